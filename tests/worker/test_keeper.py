"""A worker does what it is for: it runs jobs to their accepted ends, each as its handler said."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.kit import WorkerProcess, await_end, await_state, await_that, new, worker
from tests.world import World

MODULE = """
import asyncio
import os
from testigo import App, AsyncContext, Blocked, Context, Degraded, Permanent, RetryAfter, Yielded

app = App("jobs")

@app.job("double", queue="q")
async def double(ctx: AsyncContext, n: int) -> int:
    return 2 * n

@app.job("blocking", queue="q")
def blocking(ctx: Context, n: int) -> int:
    return ctx.epoch + n

@app.job("degraded", queue="q")
async def degraded(ctx: AsyncContext) -> int | Degraded[int]:
    return Degraded(1, limitations=["a part is missing"])

@app.job("fails", queue="q")
async def fails(ctx: AsyncContext) -> None:
    raise ValueError("no luck")

@app.job("permanent", queue="q")
async def permanent(ctx: AsyncContext) -> None:
    raise Permanent("NO_SUCH_FILE", "it is not there")

@app.job("later", queue="q")
async def later(ctx: AsyncContext) -> None:
    raise RetryAfter(3600)

@app.job("blocked", queue="q")
async def blocked(ctx: AsyncContext) -> None:
    raise Blocked("no budget", needs="an approval")

@app.job("yields", queue="q")
async def yields(ctx: AsyncContext) -> int:
    seen = ctx.load(int) or 0
    if seen < 2:
        raise Yielded(seen + 1)
    return seen

@app.job("saves", queue="q")
async def saves(ctx: AsyncContext) -> int | None:
    seen = ctx.load(int)
    if seen is None:
        await ctx.save(1)
        await ctx.save(2)
        raise RetryAfter(0)
    return seen

@app.job("parent", queue="q")
async def parent(ctx: AsyncContext) -> str:
    await ctx.submit(double, n=4)
    return "done"

@app.job("now", queue="q")
async def now(ctx: AsyncContext) -> str:
    return (await double.submit_async(n=5)).id

@app.job("large", queue="q")
async def large(ctx: AsyncContext) -> str:
    return "x" * 300_000

@app.job("environment", queue="q")
async def environment(ctx: AsyncContext) -> list[str]:
    return sorted(name for name in os.environ if name.startswith(("TESTIGO", "PG", "DATABASE")))
"""


@pytest.fixture
def busy(tmp_path: Path, database_url: str) -> Iterator[WorkerProcess]:
    """A worker with every handler of the module, ready."""
    with worker(tmp_path, database_url, MODULE, "--runners", "2", "--slots", "4", "--queues", "q") as it:
        it.ready()
        yield it
        it.signal(signal.SIGTERM)
        assert it.wait() == 0, it.log


def test_each_job_ends_as_its_handler_said(world: World, busy: WorkerProcess) -> None:
    """Values, degraded values, permanent failures, yields, saves, and submissions of both kinds."""
    ends = {
        "double": "succeeded",
        "blocking": "succeeded",
        "degraded": "succeeded_degraded",
        "permanent": "permanent_failure",
        "yields": "succeeded",
        "saves": "succeeded",
        "parent": "succeeded",
        "now": "succeeded",
    }
    arguments: dict[str, dict[str, Any]] = {"double": {"n": 2}, "blocking": {"n": 2}}
    jobs = {kind: world.submit(new(kind, **arguments.get(kind, {})))[0] for kind in ends}
    assert await_end(world, *jobs.values()) == list(ends.values())
    outputs = {kind: world.job(job).output for kind, job in jobs.items()}
    assert outputs["double"] == "4"
    assert outputs["blocking"] == "3"
    assert outputs["degraded"] == "1"
    assert outputs["yields"] == "2"
    assert outputs["saves"] == "2"


def test_what_does_not_end_waits_as_its_handler_said(world: World, busy: WorkerProcess) -> None:
    """A blocked job waits for somebody; a failure tells what was raised."""
    (later,), (blocked,), (fails,) = (world.submit(new(kind, attempts=1)) for kind in ("later", "blocked", "fails"))
    await_state(world, blocked, "blocked_by_quality")
    await_end(world, fails, later)
    assert "ValueError" in world.job(fails).error
    assert "no luck" in world.job(fails).error


def test_children_of_a_run_are_jobs_like_others(world: World, busy: WorkerProcess) -> None:
    """Those that are committed with the end, and those that are at once."""
    parent, now = world.submit(new("parent"), new("now"))
    await_end(world, parent, now)

    def outputs() -> list[str]:
        rows = world.query("SELECT output FROM testigo.job WHERE kind = 'double' AND state = 'succeeded'")
        return sorted(row.output for row in rows)

    await_that(lambda: outputs() == ["10", "8"])


def test_an_output_that_is_too_large_is_a_failure_that_names_blobs(world: World, busy: WorkerProcess) -> None:
    """The limit is the run's to learn, by its code."""
    (job,) = world.submit(new("large", attempts=1))
    assert await_end(world, job) == ["permanent_failure"]
    assert "PAYLOAD_TOO_LARGE" in world.job(job).error
    assert "blob" in world.job(job).error


def test_one_payload_that_no_handler_takes_fails_alone(world: World, busy: WorkerProcess) -> None:
    """Field case R41."""
    good = world.submit(*(new("double", n=n) for n in range(9)))
    (bad,) = world.submit(new("double", m="no number"))
    assert await_end(world, *good) == ["succeeded"] * 9
    assert await_end(world, bad) == ["permanent_failure"]


def test_runners_have_no_way_to_the_database(
    world: World, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the keeper's own URL nor what libpq would read."""
    for name in ("PGPASSWORD", "DATABASE_URL"):
        monkeypatch.setenv(name, "secret")
    with worker(tmp_path, database_url, MODULE, "--runners", "1", "--queues", "q") as it:
        it.ready()
        (job,) = world.submit(new("environment"))
        await_end(world, job)
        assert world.job(job).output == '["TESTIGO_RUNNER"]'


def test_kinds_that_nobody_handles_here_are_left_alone(world: World, busy: WorkerProcess) -> None:
    """They stay ready, and their epoch untouched."""
    (unknown,) = world.submit(new("unknown"))
    (known,) = world.submit(new("double", n=1))
    await_end(world, known)
    assert world.state(unknown) == "ready"
    assert world.job(unknown).epoch == 0


def test_a_thousand_jobs_end_once_each(world: World, busy: WorkerProcess) -> None:
    """One run and one event each."""
    jobs = world.submit(*(new("double", n=n) for n in range(1000)))
    assert set(await_end(world, *jobs)) == {"succeeded"}
    assert {world.job(job).epoch for job in jobs[:50]} == {1}
    assert world.query("SELECT count(*) AS n FROM testigo.event WHERE type = 'job.completed'")[0].n == 1000


def test_an_application_that_cannot_be_loaded_ends_the_worker_with_its_error(tmp_path: Path, database_url: str) -> None:
    """The very first runners say why, and nobody tries again."""
    with worker(tmp_path, database_url, "import no_such_module") as it:
        assert it.wait() == 11
        assert "no_such_module" in it.log


def test_a_database_that_is_not_migrated_ends_the_worker_with_its_error(tmp_path: Path, fresh_database: str) -> None:
    """What needs a hand is told at once."""
    with worker(tmp_path, fresh_database, MODULE, "--runners", "1") as it:
        assert it.wait() == 15
        assert "SCHEMA_MISMATCH" in it.log
