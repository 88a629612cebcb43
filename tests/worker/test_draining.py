"""A worker that is told to end gives up nothing: it finishes, checkpoints or gives back, and then says so."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.worker.kit import await_end, await_state, await_that, new, worker
from tests.world import World

MODULE = """
import asyncio
import pathlib
import time
from testigo import App, AsyncContext, Context, Yielded

app = App("jobs")

@app.job("waits", queue="q")
def waits(ctx: Context, go: str) -> int:
    while not pathlib.Path(go).exists():
        time.sleep(0.01)
    return ctx.epoch

@app.job("yields", queue="q")
async def yields(ctx: AsyncContext) -> str:
    seen = ctx.load(str)
    if seen is not None:
        return seen
    pathlib.Path("yields-began").touch()
    while not ctx.should_stop:
        await asyncio.sleep(0.01)
    raise Yielded("where it was")

@app.job("sleeps", queue="q")
async def sleeps(ctx: AsyncContext) -> None:
    await asyncio.sleep(60)

@app.job("deaf", queue="q")
def deaf(ctx: Context) -> None:
    while True:
        time.sleep(60)
"""
ARGUMENTS = ("--runners", "1", "--slots", "4", "--queues", "q")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_what_runs_may_finish_and_nothing_more_is_claimed(
    world: World, tmp_path: Path, database_url: str, number: signal.Signals
) -> None:
    """Handlers see the first SIGTERM, or the end of the worker's terminal, and finish, or yield.

    What comes later is another's; the session is closed.
    """
    go = tmp_path / "go"
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        waits, yields = world.submit(new("waits", go=str(go)), new("yields"))
        for job in (waits, yields):
            await_state(world, job, "running")
        await_that((tmp_path / "yields-began").exists)
        it.signal(number)
        await_state(world, yields, "checkpointed")
        await_that(lambda: world.query("SELECT 1 FROM testigo.session WHERE state = 'draining'"))
        (late,) = world.submit(new("waits", go=str(go)))
        go.touch()
        assert it.wait() == 0, it.log
    assert world.state(waits) == "succeeded"
    assert world.state(late) == "ready"
    assert world.query("SELECT state FROM testigo.session")[0].state == "closed"
    assert not world.query("SELECT 1 FROM testigo.job WHERE lease_id IS NOT NULL")


def test_what_does_not_finish_in_time_is_given_back(world: World, tmp_path: Path, database_url: str) -> None:
    """Neither a run that can be stopped nor one that is deaf counts as failed or lost."""
    (tmp_path / "testigo.toml").write_text("[worker]\nkill_grace_seconds = 0.3\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS, "--drain-seconds", "0.1") as it:
        it.ready()
        jobs = world.submit(new("sleeps"), new("deaf"))
        for job in jobs:
            await_state(world, job, "running")
        it.signal(signal.SIGINT)
        assert it.wait() == 0, it.log
    for job in jobs:
        assert world.state(job) == "ready"
        assert (world.job(job).failures, world.job(job).losses) == (0, 0)


def test_the_second_signal_waits_for_nobody(world: World, tmp_path: Path, database_url: str) -> None:
    """What ran is given back before the worker has ended, whose status names the signal."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        (job,) = world.submit(new("sleeps"))
        await_state(world, job, "running")
        it.signal(signal.SIGTERM)
        it.said("draining")
        it.signal(signal.SIGTERM)
        assert it.wait() == 128 + signal.SIGTERM
    assert world.state(job) == "ready"


def test_a_worker_can_be_ended_before_it_is_ready(tmp_path: Path, database_url: str) -> None:
    """A module that takes long to load keeps nobody from ending the worker."""
    with worker(tmp_path, database_url, "import time\ntime.sleep(60)", *ARGUMENTS) as it:
        await_that(it.runners)
        it.signal(signal.SIGTERM)
        assert it.wait() == 0


def test_runners_end_with_their_keeper(world: World, tmp_path: Path, database_url: str) -> None:
    """A keeper that is killed leaves no runner, and the next worker on the host has its job at once."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_state(world, job, "running")
        runners = it.runners()
        it.signal(signal.SIGKILL)
        it.wait()
        await_that(lambda: not any(Path(f"/proc/{pid}").exists() for pid in runners))
    (tmp_path / "go").touch()
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS, name="second"):
        assert await_end(world, job) == ["succeeded"]
    assert world.job(job).losses == 1
