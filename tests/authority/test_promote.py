"""promote: what waits for its time becomes claimable when the time has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.authority.admit import admit
from testigo.authority.promote import promote
from testigo.rules.outcomes import Fail
from testigo.rules.retries import Constant
from testigo.store.sql import Statement
from tests.world import World

# The clock of the database cannot be moved; what waits can.
_AN_HOUR_PASSES = Statement("UPDATE testigo.job SET due_at = due_at - interval '1 hour' WHERE due_at IS NOT NULL")
IN_AN_HOUR = timedelta(minutes=59)


def test_a_job_that_waits_for_its_time_is_not_claimable_before_it(world: World) -> None:
    """`ready` always means claimable now; what waits is created, and promoted when due (spec P-13)."""
    (job_id,) = world.submit(run_at=datetime.now(UTC) + IN_AN_HOUR)
    worker = world.worker()
    early = world.db.run(promote, "q")
    assert (early.promoted, world.state(job_id), worker.claim().leases) == (0, "created", ())
    assert early.next_seconds is not None
    assert 0 < early.next_seconds <= IN_AN_HOUR.total_seconds()
    world.query(_AN_HOUR_PASSES)
    due = world.db.run(promote, "q")
    assert (due.promoted, due.next_seconds, due.wakes) == (1, None, ("q",))
    assert worker.take().job_id == job_id


def test_a_failed_job_waits_for_its_retry_and_comes_back(world: World) -> None:
    """A wait after a failure ends in a promotion; a wait of zero needs none (spec P-13, A-14)."""
    (job_id,) = world.submit(backoff=Constant(3_000))
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "later")))
    assert world.state(job_id) == "retry_waiting"
    world.query(_AN_HOUR_PASSES)
    assert world.db.run(promote, "q").promoted == 1
    worker.settle((worker.take(), Fail("E", "at once", wait_seconds=0)))
    assert world.state(job_id) == "ready"


def test_a_child_that_is_due_goes_on_waiting_for_its_parent(world: World) -> None:
    """Its time alone does not make a child ready; its open parents are counted under its lock (spec P-25, P-07)."""
    (parent,) = world.submit()
    (child,) = world.submit(parents=(parent,), run_at=datetime.now(UTC) + IN_AN_HOUR)
    world.db.run(admit)
    assert world.state(child) == "created"
    world.query(_AN_HOUR_PASSES)
    world.db.run(promote, "q")
    assert world.state(child) == "inputs_pending"
    worker = world.worker()
    worker.succeed(worker.take())
    assert world.state(child) == "ready"


def test_a_promotion_takes_no_more_than_it_was_asked_for(world: World) -> None:
    """A herd is released in batches, the longest waiting first (spec P-13)."""
    soon, later = (datetime.now(UTC) + IN_AN_HOUR - timedelta(minutes=at) for at in (20, 10))
    (second,), (first,) = world.submit(run_at=later), world.submit(run_at=soon)
    world.query(_AN_HOUR_PASSES)
    assert world.db.run(promote, "q", limit=1).promoted == 1
    assert (world.state(first), world.state(second)) == ("ready", "created")
