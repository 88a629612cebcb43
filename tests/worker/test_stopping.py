"""What is told to stop does stop: by itself in the grace, else with its runner (spec P-22)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testigo.authority.cancel import cancel
from tests.worker.kit import WorkerProcess, await_end, await_state, await_that, new, worker
from tests.world import World

MODULE = """
import asyncio
import os
import pathlib
import time
from testigo import App, AsyncContext, Context

app = App("jobs")

@app.job("sleeps", queue="q")
async def sleeps(ctx: AsyncContext) -> None:
    await asyncio.sleep(60)

@app.job("looks", queue="q")
def looks(ctx: Context) -> str:
    while not ctx.cancelled:
        time.sleep(0.005)
    return "seen"

@app.job("deaf", queue="q")
def deaf(ctx: Context) -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

@app.job("waits", queue="q")
def waits(ctx: Context, go: str) -> int:
    while not pathlib.Path(go).exists():
        time.sleep(0.01)
    return ctx.epoch

@app.job("dies", queue="q")
def dies(ctx: Context) -> None:
    os.kill(os.getpid(), 11)

@app.job("breaks", queue="q")
def breaks(ctx: Context) -> None:
    for descriptor in range(3, 300):
        try:
            os.write(descriptor, b"\\xff" * 64)
        except OSError:
            pass
    time.sleep(60)

@app.job("exits", queue="q")
def exits(ctx: Context, once: str) -> str:
    path = pathlib.Path(once)
    if not path.exists():
        path.touch()
        os._exit(7)
    return "again"
"""


@pytest.fixture
def one(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcess]:
    """A worker of one runner, which kills after 0.3 s of grace."""
    (tmp_path / "testigo.toml").write_text("[worker]\nkill_grace_seconds = 0.3\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, "--runners", "1", "--slots", "4", "--queues", "q") as it:
        it.ready()
        yield it


def test_a_run_past_its_limit_is_stopped(world: World, one: WorkerProcess) -> None:
    """Its handler lets itself be cancelled, so its runner lives on."""
    (job,) = world.submit(new("sleeps", timeout_seconds=0.2, attempts=1))
    assert await_end(world, job) == ["permanent_failure"]
    assert "TIMEOUT" in world.job(job).error
    assert len(one.runners()) == 1


def test_a_run_that_does_not_stop_at_its_limit_ends_with_its_runner(
    world: World, one: WorkerProcess, tmp_path: Path
) -> None:
    """Its sibling is given back, not failed, and runs again."""
    go = tmp_path / "go"
    before = one.runners()
    sibling, deaf = world.submit(new("waits", go=str(go)), new("deaf", timeout_seconds=0.3, attempts=1))
    assert await_end(world, deaf) == ["permanent_failure"]
    assert "TIMEOUT" in world.job(deaf).error
    go.touch()
    assert await_end(world, sibling) == ["succeeded"]
    assert world.job(sibling).output == "2"
    assert (world.job(sibling).failures, world.job(sibling).losses) == (0, 0)
    assert not set(before) & set(one.runners())


def test_a_cancel_reaches_the_handler_at_once(world: World, one: WorkerProcess) -> None:
    """One is stopped; one that ends its work all the same has its result accepted."""
    sleeps, looks = world.submit(new("sleeps"), new("looks"))
    for job in (sleeps, looks):
        await_state(world, job, "running")
        world.db.run(cancel, [job], action=world.action())
    assert await_end(world, sleeps, looks) == ["cancelled", "succeeded"]


def test_a_cancelled_run_that_does_not_stop_ends_with_its_runner(world: World, one: WorkerProcess) -> None:
    """After the grace there is another runner."""
    (deaf,) = world.submit(new("deaf"))
    await_state(world, deaf, "running")
    before = one.runners()
    world.db.run(cancel, [deaf], action=world.action())
    assert await_end(world, deaf) == ["cancelled"]
    await_that(lambda: one.runners() and not set(before) & set(one.runners()))


def test_a_runner_that_exits_loses_its_runs_and_they_run_again(
    world: World, one: WorkerProcess, tmp_path: Path
) -> None:
    """A loss is counted, and told by an event."""
    (job,) = world.submit(new("exits", once=str(tmp_path / "once")))
    assert await_end(world, job) == ["succeeded"]
    assert world.job(job).losses == 1
    assert world.events(job) == ["job.requested", "job.lost", "job.completed"]


def test_a_poison_job_stops_at_its_crash_limit_and_takes_nobody_with_it_twice(
    world: World, one: WorkerProcess, tmp_path: Path
) -> None:
    """Field case R20: it is lost once beside others, then it runs alone; the event tells its signal."""
    go = tmp_path / "go"
    (beside,) = world.submit(new("waits", go=str(go)))
    await_state(world, beside, "running")
    (poison,) = world.submit(new("dies", crash_limit=3))
    assert await_end(world, poison) == ["permanent_failure"]
    assert world.job(poison).losses == 3
    go.touch()
    assert await_end(world, beside) == ["succeeded"]
    assert world.job(beside).losses == 1
    rows = world.query("SELECT data FROM testigo.event WHERE subject = CAST(:id AS uuid)", id=poison)
    assert any('"exit_signal":11' in str(row.data).replace(" ", "").replace("'", '"') for row in rows)


def test_a_handler_that_breaks_the_protocol_ends_its_own_runner_only(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """What it wrote is no frame: the run is lost, and the keeper and the other runner go on."""
    go = tmp_path / "go"
    with worker(tmp_path, database_url, MODULE, "--runners", "2", "--slots", "1", "--queues", "q") as it:
        it.ready()
        (beside,) = world.submit(new("waits", go=str(go)))
        await_state(world, beside, "running")
        (broken,) = world.submit(new("breaks", crash_limit=1))
        assert await_end(world, broken) == ["permanent_failure"]
        go.touch()
        assert await_end(world, beside) == ["succeeded"]
        assert world.job(beside).output == "1"
        assert "is killed: " in it.log
