"""save: a checkpoint that is there before the call returns."""

from __future__ import annotations

from typing import Any

import pytest

from testigo.authority.actions import new_id
from testigo.authority.save import save
from testigo.authority.start import Held
from testigo.errors import EpochStale, Invalid, LeaseLost, SessionReplaced
from testigo.rules.documents import encode
from testigo.rules.outcomes import Fail, Succeed, Yield
from tests.world import World, held


def test_the_next_run_reads_the_last_checkpoint_of_several(world: World) -> None:
    """Three saves in a row, then a failure: the next attempt reads the third (field case R36)."""
    world.submit(backoff=None)
    worker = world.worker()
    lease = worker.take()
    for number in (1, 2, 3):
        world.db.run(save, held(lease), encode({"at": number}), number=number, action=worker.action())
    worker.settle((lease, Fail("E", "m", wait_seconds=0)))
    assert worker.take().checkpoint == '{"at":3}'


def test_a_save_that_was_overtaken_does_not_undo_the_later_one(world: World) -> None:
    """Saves of one lease are numbered; a lower number is answered superseded (spec P-04)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    later = world.db.run(save, held(lease), encode(2), number=2, action=worker.action())
    earlier = world.db.run(save, held(lease), encode(1), number=1, action=worker.action())
    assert (later.superseded, earlier.superseded) == (False, True)
    assert world.job(job_id).checkpoint == "2"


def test_each_lease_counts_its_saves_from_one(world: World) -> None:
    """The numbers are the lease's: a new owner's first save applies whatever the last one's were (spec P-04)."""
    (job_id,) = world.submit()
    worker = world.worker()
    first = worker.take()
    world.db.run(save, held(first), encode(7), number=7, action=worker.action())
    worker.settle((first, Yield(encode(8))))
    second = worker.take()
    assert not world.db.run(save, held(second), encode(9), number=1, action=worker.action()).superseded
    assert world.job(job_id).checkpoint == "9"


def test_a_settle_after_a_save_is_accepted_although_its_revision_is_old(world: World) -> None:
    """The answer to the save was lost, so the holder's revision is a guess that misses: never a refusal (spec P-15)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    world.db.run(save, held(lease), encode(1), number=1, action=worker.action())
    worker.settle((lease, Succeed()))
    assert world.state(job_id) == "succeeded"


def test_a_holder_that_lost_its_lease_saves_nothing(world: World) -> None:
    """Without the lease nothing is kept; with a newer epoch the refusal says so (spec D-03, B-16)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    other = held(lease)._replace(lease_id=new_id())
    with pytest.raises(LeaseLost):
        world.db.run(save, other, encode(1), number=1, action=worker.action())
    worker.settle((lease, Yield(encode("kept"))))
    worker.take()
    with pytest.raises(EpochStale):
        world.db.run(save, held(lease), encode(1), number=1, action=worker.action())
    assert world.job(job_id).checkpoint == '"kept"'


def test_a_session_that_is_over_saves_nothing(world: World) -> None:
    """A fenced holder cannot write, even before its leases are taken back (spec P-18)."""
    world.submit()
    worker = world.worker("named")
    lease = worker.take()
    world.worker("named")
    with pytest.raises(SessionReplaced):
        world.db.run(save, held(lease), encode(1), number=1, action=worker.action())


def test_nobody_saves_for_a_job_that_nobody_holds(world: World) -> None:
    """A save without a lease is refused, also where the job has none: it would be found by that (spec P-15)."""
    (job_id,) = world.submit()
    worker = world.worker()
    nobody: Any = None
    with pytest.raises(Invalid):
        world.db.run(save, Held(job_id, nobody, 0), encode(1), number=1, action=worker.action())
    assert world.job(job_id).checkpoint is None
