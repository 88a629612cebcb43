"""probe: what a sweep would find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.authority.admit import admit
from testigo.authority.probe import Findings, probe
from testigo.authority.promote import promote
from testigo.authority.retire import retire_lapsed
from testigo.authority.submissions import NewJob
from testigo.settings import LIMITS
from tests.world import World

LATER = datetime(2040, 1, 1, tzinfo=UTC)
NOTHING = Findings(False, False, (), None)


def test_where_there_is_nothing_to_do_nothing_is_found(world: World) -> None:
    """Nor where jobs are ready or have ended."""
    assert world.db.run(probe) == NOTHING
    world.submit(), world.submit()
    worker = world.worker()
    worker.succeed(worker.take())
    assert world.db.run(probe) == NOTHING


def test_what_waits_for_its_time_is_found_by_queue_and_the_next_by_its_date(world: World) -> None:
    """However many wait in a queue, and whatever its name: those that are due are named (spec P-13)."""
    queues = ["a", "a b", "é", "z"]
    world.submit(*(NewJob("work", queue=queue, run_at=LATER) for queue in queues for _ in range(3)))
    found = world.db.run(probe)
    assert found.due == ()
    assert found.next_due_seconds is not None
    left = (LATER - datetime.now(UTC)).total_seconds()
    assert abs(found.next_due_seconds - left) < timedelta(days=1).total_seconds()
    world.query("UPDATE testigo.job SET due_at = now() WHERE queue IN ('a b', 'z')")
    assert sorted(world.db.run(probe).due) == ["a b", "z"]
    for queue in queues:
        world.db.run(promote, queue)
    assert world.db.run(probe).due == ()


def test_a_queue_is_found_behind_however_many_others_whose_jobs_wait(world: World) -> None:
    """Its name is no reason to leave its retries waiting (spec P-13)."""
    queues = [*(f"a{n}" for n in range(LIMITS.page_max)), "z"]
    world.submit(*(NewJob("work", queue=queue, run_at=LATER) for queue in queues))
    world.query("UPDATE testigo.job SET due_at = now() WHERE queue = 'z'")
    assert world.db.run(probe).due == ("z",)


def test_what_waits_for_its_admission_and_what_has_lapsed_is_found(world: World) -> None:
    """Until it is done (spec P-11, P-24)."""
    (parent,) = world.submit(finish_by=LATER)
    world.submit(parents=(parent,))
    assert world.db.run(probe) == NOTHING._replace(admits=True)
    world.db.run(admit)
    world.query("UPDATE testigo.job SET finish_by = now() - interval '1 second' WHERE finish_by IS NOT NULL")
    world.query("UPDATE testigo.lapse SET at = now() - interval '1 second'")
    assert world.db.run(probe) == NOTHING._replace(lapses=True)
    world.db.run(retire_lapsed)
    assert world.db.run(probe) == NOTHING
