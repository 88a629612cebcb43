"""settle: the fast path, and what it leaves to the slow one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testigo.authority import read
from testigo.authority.cancel import cancel
from testigo.authority.deferred import How, settle_deferred
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.errors import Invalid, KeyConflict
from testigo.rules.documents import encode
from testigo.rules.outcomes import Fail, Lose, Release, RunFacts, Succeed
from tests.world import World


def test_a_run_that_succeeds_ends_its_job_and_frees_its_lease(world: World) -> None:
    """A settled job is terminal, holds its output exactly and nobody owns it (spec B-13, P-06)."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.settle((worker.take(), Succeed(encode({"n": 1e2, "z": -0.0}))))
    job = world.job(job_id)
    assert (job.state, job.output, job.lease_id) == ("succeeded", '{"n":100.0,"z":-0.0}', None)
    assert world.events(job_id) == ["job.requested", "job.completed"]


def test_a_retryable_failure_after_a_cancel_request_ends_in_cancelled(world: World) -> None:
    """A cancel that arrives mid-run wins over a retry, and the next job is taken (field case R32)."""
    first, second = world.submit()[0], world.submit()[0]
    worker = world.worker()
    lease = worker.take()
    world.db.run(cancel, [first], action=world.action())
    (row,) = worker.settle_slowly((lease, Fail("E", "try again")))
    assert row.how is How.ACCEPTED
    assert world.state(first) == "cancelled"
    assert worker.take().job_id == second


def test_a_run_that_its_holder_lost_is_told_as_lost_with_what_was_found(world: World) -> None:
    """A loss, no failure: it runs again at once, until its crash limit, and how it was found is kept as its error
    (spec P-24, P-27, model.md)."""
    (job_id,) = world.submit(crash_limit=2)
    worker = world.worker()
    gone, facts = Lose("RUNNER_DIED", "signal 9"), RunFacts(exit_signal=9)
    for state in ("ready", "permanent_failure"):
        row = Settlement(worker.take(), gone, facts)
        action = worker.action()
        assert world.db.run(settle, [row], action=action).deferred == (0,)
        world.db.run(settle_deferred, [(0, row)], action=action)
        assert world.state(job_id) == state
    view = world.db.run(read.job, job_id)
    assert (view.failures, view.losses, view.reason) == (0, 2, "crashes")
    assert view.error == {"code": "RUNNER_DIED", "message": "signal 9", "detail": ""}
    told = world.query(
        "SELECT type, data FROM testigo.event WHERE type IN ('job.lost', 'job.failed') ORDER BY sequence"
    )
    assert [row.type for row in told] == ["job.lost", "job.failed"]
    for losses, data in enumerate((json.loads(row.data) for row in told), 1):
        found = [data[name] for name in ("note", "exit_signal", "losses", "crash_limit")]
        assert found == ["RUNNER_DIED: signal 9", 9, losses, 2]


def test_nobody_settles_a_job_that_nobody_holds(world: World) -> None:
    """A settle without a lease is refused, also where the job has none: it would be found by that (spec P-15)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    worker.settle((lease, Release()))
    row = world.job(job_id)
    nobody: Any = None
    with pytest.raises(Invalid):
        worker.settle((lease._replace(lease_id=nobody, epoch=row.epoch, revision=row.revision), Succeed()))
    assert world.state(job_id) == "ready"


def test_a_child_whose_key_names_other_work_is_not_lost_silently(world: World) -> None:
    """The end of a run and what it submits commit together or not at all (spec B-02, D-01)."""
    world.submit(NewJob("work", queue="later", key="k", payload=encode(1)))
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    child = NewJob("work", queue="later", key="k", payload=encode(2))
    ends = [Settlement(lease, Succeed(), children=(child,))]
    action = worker.action()
    assert world.db.run(settle, ends, action=action).deferred == (0,)
    with pytest.raises(KeyConflict):
        world.db.run(settle_deferred, list(enumerate(ends)), action=action)
    assert world.state(job_id) == "running"
