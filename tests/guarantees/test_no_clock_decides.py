"""No clock can break ownership: a lease is lost by a beat that was watched standing still, never by a date."""

from __future__ import annotations

import pytest

from testigo.authority.expire import declare_dead, expire, read_beats, take_back
from testigo.authority.renew import renew
from testigo.authority.retire import retire_lapsed
from testigo.rules.leases import Reading, Watch
from testigo.store.sql import Statement
from tests.invariants import check
from tests.world import World, held

# The database's clock cannot be moved for one database of a server; every date that it ever wrote can.
_CLOCK_JUMPS = Statement(
    """
    WITH jobs AS (
        UPDATE testigo.job
        SET created_at = created_at + make_interval(hours => :hours),
            ready_at = ready_at + make_interval(hours => :hours),
            leased_at = leased_at + make_interval(hours => :hours),
            started_at = started_at + make_interval(hours => :hours)
    )
    UPDATE testigo.session_profile SET opened_at = opened_at + make_interval(hours => :hours)
    """
)


@pytest.mark.parametrize("hours", [-8_760, -1, 1, 8_760])
def test_a_clock_that_jumps_expires_no_live_lease_and_commits_nothing_twice(world: World, hours: int) -> None:
    """An hour, or a year, forwards or backwards: whoever sweeps finds nothing, and the holder goes on (spec A-07)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    watch = Watch[Reading]()
    beats = world.db.run(read_beats)
    watch.observe(beats.readings, beats.incarnation, answered_at=0.0)
    world.query(_CLOCK_JUMPS, hours=hours)
    watch.observe(beats.readings, beats.incarnation, answered_at=0.1)
    assert watch.dead() == []
    assert world.db.run(expire).taken == 0
    assert world.db.run(retire_lapsed) == 0
    renewed = world.db.run(renew, worker.id, [held(lease)], epoch=worker.session.epoch, beat=1, low_water=1)
    assert renewed.lost == ()
    assert world.worker().claim().leases == ()
    worker.succeed(lease)
    assert world.events(job_id) == ["job.requested", "job.completed"]
    check(world.db)


def test_only_a_beat_that_stood_still_for_a_term_of_the_watcher_ends_a_session(world: World) -> None:
    """Age is what the watcher's own monotonic clock saw, capped between two looks (spec P-18, Promise 9)."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.take()
    term = worker.session.term_seconds
    watch = Watch[Reading]()
    seconds = 0.0
    while not watch.dead():
        beats = world.db.run(read_beats)
        watch.observe(beats.readings, beats.incarnation, answered_at=seconds)
        seconds += term / 5
    assert seconds >= term
    (dead,) = watch.dead()
    assert world.db.run(declare_dead, dead.session_id, epoch=dead.epoch, beat=dead.beat)
    assert world.db.run(expire).taken == 1
    assert world.state(job_id) == "ready"
    check(world.db)


def test_a_session_that_beat_meanwhile_is_not_declared_dead(world: World) -> None:
    """The verdict is compare-and-set on the beat that was watched, as all ownership is (spec B-05, P-18)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    world.db.run(renew, worker.id, [held(lease)], epoch=1, beat=1, low_water=1)
    assert not world.db.run(declare_dead, worker.id, epoch=1, beat=0)
    assert world.db.run(expire).taken == 0
    assert world.state(job_id) == "running"


def test_taking_back_touches_no_grant_above_its_watermark(world: World) -> None:
    """A claim whose answer is still on its way is not taken back from under its keeper (spec P-17)."""
    first, second = world.submit()[0], world.submit()[0]
    worker = world.worker()
    worker.take()
    watermark = worker.n
    worker.take()
    taken = world.db.run(take_back, worker.id, watermark=watermark, listed=[])
    assert (taken.taken, world.state(first), world.state(second)) == (1, "ready", "running")
