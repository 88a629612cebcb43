"""Promise 3 with real workers: who was frozen, cut off or told that its lease is lost changes nothing any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testigo.authority.actions import SessionId
from testigo.authority.sessions import close_session
from tests.guarantees.crew import crew, told
from tests.worker.kit import await_end, await_state, await_that, new
from tests.world import World


def session_of(world: World, agent: str) -> SessionId:
    """The newest session of an agent."""
    rows = world.query(
        "SELECT CAST(id AS text) AS id FROM testigo.session WHERE agent = :agent ORDER BY epoch DESC", agent=agent
    )
    return SessionId(rows[0].id)


def late_of(world: World, job_id: str) -> list[tuple[int, str]]:
    """The epochs and documents of what came late for a job."""
    rows = world.query("SELECT epoch, document FROM testigo.late WHERE job_id = CAST(:id AS uuid)", id=job_id)
    return [(row.epoch, row.document) for row in rows]


def test_a_keeper_that_was_frozen_past_its_term_comes_back_to_nothing(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Its handler ended meanwhile, and so did the run of the worker that took over: one outcome, of epoch 2, and the
    first result kept as late. With its one slot free again it never runs two at once, for slots are counted from what
    really runs (Promises 2 and 3; field cases R01, R13, R16; spec B-16, P-18)."""
    gone, there = tmp_path / "gone", tmp_path / "there"
    with (
        crew(gone, database_url, "--slots", "1", "--agent", "gone") as first,
        crew(there, database_url, "--slots", "1", "--agent", "there") as second,
    ):
        first.ready()
        second.signal(signal.SIGSTOP)  # so that it does not take the job first
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_that(lambda: told(gone, "waits"))
        first.signal(signal.SIGSTOP)
        second.signal(signal.SIGCONT)
        await_that(lambda: told(there, "waits"), "the second run")
        (tmp_path / "go").touch()
        assert await_end(world, job) == ["succeeded"]
        await_that(lambda: told(gone, "did"), "the end of the first handler")
        first.signal(signal.SIGCONT)
        await_that(lambda: late_of(world, job), "the late result")
        first.ready(times=2)
        others = world.submit(*(new("one") for _ in range(30)))
        assert set(await_end(world, *others)) == {"succeeded"}
    row = world.job(job)
    assert (row.output, row.epoch, row.losses) == ("2", 2, 1)
    assert world.events(job) == ["job.requested", "job.lost", "job.completed"]
    assert late_of(world, job) == [(1, "1")]


def test_a_holder_that_hears_nothing_stops_before_its_work_begins_elsewhere(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Its server is silent, so its keeper cannot know: it kills the handler, and only then the term ends and the job
    may begin elsewhere. When the silence is over it goes on (field case R13; spec P-16, P-18, P-19)."""
    with crew(tmp_path, f"{database_url}&application_name=silent") as first:
        first.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_that(lambda: told(tmp_path, "waits"))
        with crew(tmp_path, database_url, name="second") as second:
            second.ready()
            with silent(world, "silent"):
                first.said("runners are killed")
                await_that(lambda: {each.epoch for each in told(tmp_path)} == {1, 2}, "the second run")
            (tmp_path / "go").touch()
            assert await_end(world, job) == ["succeeded"]
            second.signal(signal.SIGTERM)
            assert second.wait() == 0, second.log
        (after,) = world.submit(new("works"))
        assert await_end(world, after) == ["succeeded"]
    epochs = [each.epoch for each in told(tmp_path) if each.job_id == job]
    assert epochs == sorted(epochs)
    assert world.job(job).epoch == 2


@contextmanager
def silent(world: World, application: str) -> Iterator[None]:
    """Stop the server processes of an application's connections for a while, at a moment at which none holds a lock."""
    named = "SELECT pid, state FROM pg_stat_activity WHERE application_name = :name AND datname = current_database()"

    def are_idle() -> bool:
        return all(row.state == "idle" for row in world.query(named, name=application))

    def signal_all(number: signal.Signals) -> None:
        for row in world.query(named, name=application):
            os.kill(row.pid, number)

    try:
        while True:
            await_that(are_idle)
            signal_all(signal.SIGSTOP)
            if are_idle():
                break
            signal_all(signal.SIGCONT)
        yield
    finally:
        signal_all(signal.SIGCONT)


def test_a_handler_whose_lease_was_lost_is_told_and_can_write_nothing(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Somebody ended its session. It is told why it is stopped; a checkpoint is refused and its result is kept as
    late, and the same worker runs the job again under a new session (field case R13; spec P-15, P-23)."""
    with crew(tmp_path, database_url, "--agent", "told") as it:
        it.ready()
        (job,) = world.submit(new("writes-on"))
        await_that(lambda: told(tmp_path, "began"))
        world.db.run(close_session, session_of(world, "told"))
        assert await_end(world, job) == ["succeeded"]
        it.ready(times=2)
        await_that(lambda: late_of(world, job))
    assert [each.what for each in told(tmp_path) if each.epoch == 1] == ["began", "lease_lost", "LEASE_LOST"]
    assert [each.epoch for each in told(tmp_path, "again")] == [2]
    row = world.job(job)
    assert (row.output, row.checkpoint, row.losses) == ('"again"', None, 1)
    assert late_of(world, job) == [(1, '"late"')]


def test_a_runner_that_outlives_its_keeper_is_ended_before_its_job_runs_again(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Even one that was stopped: nobody waits for the term, and no two handlers of one job ever run (Promise 2; spec
    P-20)."""
    with crew(tmp_path, database_url) as first:
        first.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_state(world, job, "running")
        await_that(lambda: told(tmp_path, "waits"))
        for runner in first.runners():
            os.kill(runner, signal.SIGSTOP)
        first.signal(signal.SIGKILL)
        first.wait()
        with crew(tmp_path, database_url, name="second"):
            await_that(lambda: {each.epoch for each in told(tmp_path, "waits")} == {1, 2})
            (tmp_path / "go").touch()
            assert await_end(world, job) == ["succeeded"]
    epochs = [each.epoch for each in told(tmp_path)]
    assert epochs == sorted(epochs)
    assert world.job(job).losses == 1
