"""time_out: what ends a run that its keeper does not end."""

from __future__ import annotations

import pytest

from testigo.authority import read
from testigo.authority.cancel import cancel
from testigo.authority.deferred import How
from testigo.authority.expire import TakenBack
from testigo.authority.jobs import lock
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.authority.time_out import read_runs, time_out
from testigo.rules.leases import RunReading
from testigo.rules.outcomes import Succeed
from testigo.rules.retries import Constant
from testigo.settings import LIMITS
from tests.races import in_line
from tests.world import World

NOTHING = TakenBack(0, more=False)


def test_the_runs_of_live_sessions_are_read_with_the_age_at_which_they_are_over(world: World) -> None:
    """Two terms past the limit, which are their keeper's to end them itself (spec P-22)."""
    world.submit(timeout_seconds=100.0)
    world.submit(timeout_seconds=7.5)
    world.submit()
    world.submit()
    worker, gone = world.worker(), world.worker()
    first, second = worker.take(), worker.take()
    gone.take()
    world.db.run(close_session, gone.id)
    expected = {RunReading(first.job_id, 1, 130.0, 15.0), RunReading(second.job_id, 1, 37.5, 15.0)}
    assert set(world.db.run(read_runs)) == expected


def test_every_run_is_read_however_many_there_are(world: World) -> None:
    """One that stays past its limit among thousands is seen as any other (spec P-22)."""
    jobs = set(world.submit(*(NewJob("work", queue="q") for _ in range(LIMITS.page_max + 1))))
    worker = world.worker()
    while worker.claim(LIMITS.claim_max).leases:
        pass
    assert {run.job_id for run in world.db.run(read_runs)} == jobs


def test_a_run_whose_job_is_locked_is_left_to_the_next_look(world: World) -> None:
    """Nothing is waited for: who looks has beats to read (spec P-18, P-22)."""
    (job_id,) = world.submit()
    lease = world.worker().take()
    _, taken = in_line(
        world.db, lambda c: lock(c, [job_id]), lambda: world.db.run(time_out, job_id, lease.epoch), undone=True
    )
    assert taken == NOTHING
    assert world.db.run(time_out, job_id, lease.epoch).taken == 1


def test_a_run_that_is_timed_out_is_a_failure_and_its_holder_has_lost_it(world: World) -> None:
    """It is told as the contract's other failures are, whose run it was included, and what its holder reports at
    last is evidence (spec A-14, B-16, P-22, P-27)."""
    (job_id,) = world.submit(backoff=Constant(0), timeout_seconds=5)
    worker = world.worker()
    lease = worker.take()
    assert world.db.run(time_out, job_id, lease.epoch) == TakenBack(1, more=False, wakes=("q",))
    found = world.db.run(read.job, job_id)
    assert (found.state, found.failures, found.losses) == ("ready", 1, 0)
    assert found.error is not None
    assert found.error["code"] == "TIMEOUT"
    assert "5 s" in found.error["message"]
    (row,) = world.query("SELECT actor, CAST(data AS json) AS data FROM testigo.event WHERE type = 'job.failed'")
    assert (row.actor, row.data["code"], row.data["agent"]) == ("system", "TIMEOUT", worker.session.agent)
    (late,) = worker.settle_slowly((lease, Succeed()))
    assert late.how is How.LATE


def test_only_the_very_run_is_timed_out(world: World) -> None:
    """One that has ended meanwhile, or the job's next one, is left alone (spec P-15, P-22)."""
    (job_id,) = world.submit(backoff=Constant(0))
    worker = world.worker()
    lease = worker.take()
    assert world.db.run(time_out, job_id, lease.epoch + 1) == NOTHING
    world.db.run(time_out, job_id, lease.epoch)
    again = worker.take()
    assert world.db.run(time_out, job_id, lease.epoch) == NOTHING
    worker.succeed(again)
    assert world.db.run(time_out, job_id, again.epoch) == NOTHING
    assert world.state(job_id) == "succeeded"


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_run_that_was_to_be_cancelled_or_was_the_last_is_the_end(world: World, attempts: int) -> None:
    """A cancel wins over another try, and so does a budget that is spent (spec D-20, Promise 6, Promise 7)."""
    (job_id,) = world.submit(attempts=attempts)
    lease = world.worker().take()
    if attempts > 1:
        world.db.run(cancel, [job_id], action=world.action())
    world.db.run(time_out, job_id, lease.epoch)
    assert world.state(job_id) == ("cancelled" if attempts > 1 else "permanent_failure")
