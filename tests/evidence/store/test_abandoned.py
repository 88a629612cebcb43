"""An analysis always ends, whatever becomes of the job that publishes it (spec D-20, D-21)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.cancel import cancel
from testigo.authority.expire import expire
from testigo.authority.prune import prune_jobs
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire
from testigo.authority.sessions import close_session
from testigo.errors import StateConflict
from testigo.evidence import abandoned
from testigo.evidence.abandoned import Abandoned, end_abandoned
from testigo.evidence.analyses import cancel_analysis
from testigo.evidence.collection import Locked, lock
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules.outcomes import Fail
from tests.evidence.store.kit import Going, found, going, sealed
from tests.races import deadlocks, in_line, race
from tests.world import World

JOB = "UPDATE testigo.job SET $what WHERE id = CAST(:id AS uuid) RETURNING 1 AS one"


def fails(world: World, run: Going) -> None:
    """For good, with something to say that is nobody's business."""
    run.worker.settle((run.lease, Fail("SPOOL_GONE", "password='hunter2hunter2'", permanent=True)))


def is_cancelled(world: World, run: Going) -> None:
    """By whoever knows of jobs and not of analyses."""
    world.db.run(cancel, [run.lease.job_id], action=world.action())
    run.worker.settle((run.lease, Fail("CANCELLED", "stopped")))


def is_lost(world: World, run: Going) -> None:
    """Once too often."""
    world.query(JOB.replace("$what", "crash_limit = 1"), id=run.lease.job_id)
    world.db.run(close_session, run.worker.id)
    world.db.run(expire)


def expires(world: World, run: Going) -> None:
    """Its date passes while it waits to be tried again."""
    run.worker.settle((run.lease, Fail("E", "again", wait_seconds=60.0)))
    world.query(JOB.replace("$what", "finish_by = now() - interval '1 second'"), id=run.lease.job_id)
    world.db.run(retire, [run.lease.job_id])


def is_pruned(world: World, run: Going) -> None:
    """Nobody swept before it was."""
    fails(world, run)
    while world.db.run(prune_jobs, older_than_days=0).more:
        pass
    assert world.query(JOB.replace("$what", "reason = reason"), id=run.lease.job_id) == []


ENDS: dict[Callable[[World, Going], None], tuple[AnalysisState, str]] = {
    fails: (AnalysisState.FAILED, "permanent_failure (SPOOL_GONE: password="),
    is_cancelled: (AnalysisState.CANCELLED, "cancelled ("),
    is_lost: (AnalysisState.FAILED, "permanent_failure ("),
    expires: (AnalysisState.FAILED, "permanent_failure ("),
    is_pruned: (AnalysisState.FAILED, "permanent_failure."),
}


@pytest.mark.parametrize("become", ENDS, ids=lambda become: become.__name__.replace("_", " "))
def test_it_ends_when_its_job(world: World, become: Callable[[World, Going], None]) -> None:
    """With the reason, from which secrets are redacted, and once."""
    run, other = going(world), going(world)
    become(world, run)
    assert world.db.run(end_abandoned).analysis_id == run.id
    view = world.db.run(analysis, run.id).view
    state, why = ENDS[become]
    assert (view.state, view.persisted) == (state, False)
    assert view.reason is not None
    assert view.reason.startswith(f"Nothing was published, for its job is {why}"), view.reason
    assert "hunter2" not in view.reason
    assert view.ended_at is not None
    assert world.db.run(end_abandoned) == Abandoned(None)
    assert world.db.run(analysis, other.id).view.state is AnalysisState.RUNNING


def test_what_still_works_for_it_is_cancelled(world: World) -> None:
    """Nobody would publish what its other jobs find."""
    run = going(world, "ruff", "bandit")
    (ruff, bandit) = run.new.parts
    again = world.db.run(reprocess, ruff.job.id, action=world.action()).job_id
    fails(world, run)
    world.db.run(end_abandoned)
    assert (world.state(ruff.job.id), world.state(bandit.job.id), world.state(again)) == (
        "succeeded",
        "succeeded",
        "cancelled",
    )


def test_one_whose_job_is_being_reprocessed_is_left_alone(world: World) -> None:
    """Whoever does so holds the job, and is waited for (spec P-07, P-08)."""
    run = going(world)
    fails(world, run)
    action = world.action()
    made, ended = in_line(
        world.db, lambda c: reprocess(c, run.lease.job_id, action=action), lambda: world.db.run(end_abandoned)
    )
    assert ended == Abandoned(None)
    assert (world.state(made.job_id), world.db.run(analysis, run.id).view.state) == ("ready", AnalysisState.RUNNING)


def test_one_whose_job_was_reprocessed_after_the_look_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the analysis ends, nor is the new job cancelled."""
    run = going(world, "ruff", "bandit")
    fails(world, run)
    made: list[JobId] = []

    def late(c: Connection, analysis_id: AnalysisId) -> Locked:
        made.append(world.db.run(reprocess, run.lease.job_id, action=world.action()).job_id)
        made.append(world.db.run(reprocess, run.new.parts[0].job.id, action=world.action()).job_id)
        return lock(c, analysis_id)

    monkeypatch.setattr(abandoned, "lock", late)
    assert world.db.run(end_abandoned) == Abandoned(None)
    assert ([world.state(job) for job in made], world.db.run(analysis, run.id).view.state) == (
        ["ready", "ready"],
        AnalysisState.RUNNING,
    )


def test_who_reprocesses_the_job_of_one_that_is_being_ended_comes_after(world: World) -> None:
    """The new job has nothing to publish, and says so (spec D-20)."""
    run = going(world)
    fails(world, run)
    action = world.action()
    ended, made = in_line(world.db, end_abandoned, lambda: world.db.run(reprocess, run.lease.job_id, action=action))
    assert ended.analysis_id == run.id
    lease = run.worker.take()
    assert lease.job_id == made.job_id
    with pytest.raises(StateConflict):
        Going(world, run.new, run.worker, lease).publish(sealed(found("a")))


def test_sweepers_and_those_who_reprocess_and_cancel_meet_no_deadlock(world: World) -> None:
    """Two sweeps, of which one ends it or none; whoever is last, it has ended."""
    for _ in range(4):
        run = going(world, "ruff", "bandit")
        fails(world, run)
        parts = [part.job.id for part in run.new.parts]
        again = [world.db.run(reprocess, job, action=world.action()).job_id for job in parts]
        moves: list[Callable[[], Any]] = [
            partial(world.db.run, end_abandoned),
            partial(world.db.run, end_abandoned),
            partial(world.db.run, reprocess, run.lease.job_id, action=world.action()),
            partial(world.db.run, cancel, [*again, run.lease.job_id], action=world.action()),
            partial(world.db.run, cancel_analysis, run.id, reason="x", action=world.action()),
        ]
        first, second, *_ = race(world.db, *moves)
        assert sum(isinstance(each, Abandoned) and each.analysis_id is not None for each in (first, second)) <= 1
        assert world.db.run(analysis, run.id).view.state in (AnalysisState.FAILED, AnalysisState.CANCELLED)
    assert deadlocks(world.db) == 0


def test_one_whose_job_goes_on_is_left_alone(world: World) -> None:
    """A job that was reprocessed goes on in its successor, and publishes by it (spec A-06)."""
    run = going(world)
    run.worker.settle((run.lease, Fail("E", "again", wait_seconds=0.0)))
    assert world.db.run(end_abandoned) == Abandoned(None)
    run.worker.settle((run.worker.take(), Fail("E", "never", permanent=True)))
    made = world.db.run(reprocess, JobId(run.lease.job_id), action=world.action()).job_id
    assert world.db.run(end_abandoned) == Abandoned(None)
    lease = run.worker.take()
    assert lease.job_id == made
    going_on = Going(world, run.new, run.worker, lease)
    assert going_on.publish(sealed(found("a"))).state is AnalysisState.COMPLETE
    run.worker.succeed(lease)
    assert world.db.run(end_abandoned) == Abandoned(None)
