"""Promises 1 and 6 over restarts: what ends in the grace counts, what does not is given back, and nothing is burnt."""

from __future__ import annotations

import signal
from pathlib import Path

from testigo.authority.actions import JobId
from testigo.authority.explain import Code, explain
from tests.guarantees.crew import HANDLERS, crew, told
from tests.worker.kit import await_end, await_that, new
from tests.world import World

NEW_KIND = """
@app.job("new-kind", queue="q")
async def new_kind(ctx: AsyncContext) -> str:
    return "new"
"""


def test_what_ends_in_the_grace_is_committed_before_the_exit(world: World, tmp_path: Path, database_url: str) -> None:
    """A worker is told to stop in the middle of a job: the job ends, its settle commits before the process exits, and
    a restarted worker does not run it again (field case R24)."""
    with crew(tmp_path, database_url) as it:
        it.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_that(lambda: told(tmp_path, "waits"))
        it.signal(signal.SIGTERM)
        it.said("draining")
        (tmp_path / "go").touch()
        assert it.wait() == 0
        assert world.state(job) == "succeeded"
    with crew(tmp_path, database_url, name="second") as it:
        it.ready()
        (after,) = world.submit(new("works"))
        await_end(world, after)
    assert [each.epoch for each in told(tmp_path, "did") if each.job_id == job] == [1]
    assert world.job(job).epoch == 1


def test_stopped_means_that_all_is_settled(world: World, tmp_path: Path, database_url: str) -> None:
    """A worker is stopped in the middle of a stream of short jobs: when its process is gone, exactly those that were
    done have ended, and the next worker does each of the others, once (Promise 1; field case R25)."""
    jobs = world.submit(*(new("works", seconds=0.001) for _ in range(600)))
    with crew(tmp_path, database_url, "--slots", "20", "--runners", "2") as it:
        await_that(lambda: len(told(tmp_path)) >= 100)
        it.signal(signal.SIGTERM)
        assert it.wait() == 0
        ended = {
            row.id for row in world.query("SELECT CAST(id AS text) AS id FROM testigo.job WHERE state='succeeded'")
        }
        assert ended == {each.job_id for each in told(tmp_path, "did")}
        assert not world.query("SELECT 1 FROM testigo.job WHERE lease_id IS NOT NULL")
    with crew(tmp_path, database_url, "--slots", "20", name="second"):
        assert set(await_end(world, *jobs)) == {"succeeded"}
    assert sorted(each.job_id for each in told(tmp_path, "did")) == sorted(jobs)


def test_ten_graceful_restarts_burn_no_attempt(world: World, tmp_path: Path, database_url: str) -> None:
    """A job of three attempts that runs through ten deployments, yielding where it stands, and one that has to be
    stopped: each lives, with ten of its runs given back and no failure and no loss (Promise 6; field case R26)."""
    yields, sleeps = world.submit(new("yields", attempts=3), new("sleeps", attempts=3))
    for number in range(1, 11):
        with crew(tmp_path, database_url, "--drain-seconds", "0.2", name=f"worker-{number}") as it:
            it.ready()
            await_begun(tmp_path, number, yields, sleeps)
            it.signal(signal.SIGTERM)
            assert it.wait() == 0, it.log
    for job, state in ((yields, "checkpointed"), (sleeps, "ready")):
        row = world.job(job)
        assert (row.state, row.failures, row.losses, row.releases) == (state, 0, 0, 10)
    assert world.job(yields).checkpoint == "10"


def await_begun(folder: Path, epoch: int, *jobs: JobId) -> None:
    """Wait until the handlers of this run of these jobs have begun."""
    await_that(
        lambda: {(job, epoch) for job in jobs} <= {(each.job_id, each.epoch) for each in told(folder, "began")},
        f"the run {epoch} of each job",
    )


def test_a_kind_that_only_new_code_knows_waits_for_it(world: World, tmp_path: Path, database_url: str) -> None:
    """A worker with old code leaves the job alone, it is shown as served by nobody, and it runs after the deployment
    (field case R49; spec P-14)."""
    (job,) = world.submit(new("new-kind"))
    with crew(tmp_path, database_url) as it:
        it.ready()
        (known,) = world.submit(new("works"))
        assert await_end(world, known) == ["succeeded"]
        assert (world.state(job), world.job(job).epoch) == ("ready", 0)
        assert world.db.run(explain, job).code is Code.UNSERVED
    with crew(tmp_path, database_url, module=HANDLERS + NEW_KIND, name="second"):
        assert await_end(world, job) == ["succeeded"]
    assert (world.job(job).output, world.job(job).epoch) == ('"new"', 1)
