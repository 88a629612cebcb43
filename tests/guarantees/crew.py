"""Real workers in the field cases: a short term, a short grace, and handlers that write down what they did.

    with crew(tmp_path, database_url) as it:
        it.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))

What the handlers wrote is in the file `told` of their worker's folder: what was really done, beside what
the authority accepted of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.worker.kit import WorkerProcess, worker
from tests.world import World

__all__ = ["HANDLERS", "TERM_SECONDS", "Told", "crew", "facts_of", "told"]

TERM_SECONDS = 2.0

HANDLERS = """
import asyncio
import ctypes
import fcntl
import os
import signal
import time
from pathlib import Path

from testigo import App, AsyncContext, Context, Permanent, Yielded
from testigo.errors import Error

app = App("jobs")

def tell(ctx: Context | AsyncContext, what: str) -> None:
    with open("told", "a") as file:
        file.write(f"{ctx.job_id} {ctx.epoch} {what} {time.monotonic()}\\n")

@app.job("works", queue="q")
async def works(ctx: AsyncContext, seconds: float = 0.0) -> int:
    await asyncio.sleep(seconds)
    tell(ctx, "did")
    return ctx.epoch

@app.job("waits", queue="q")
def waits(ctx: Context, go: str) -> int:
    while not Path(go).exists():
        tell(ctx, "waits")
        time.sleep(0.01)
    tell(ctx, "did")
    return ctx.epoch

@app.job("hogs", queue="q")
async def hogs(ctx: AsyncContext, seconds: float) -> int:
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return ctx.epoch

@app.job("blocks", queue="q")
async def blocks(ctx: AsyncContext, seconds: float) -> int:
    time.sleep(seconds)
    return ctx.epoch

@app.job("deaf", queue="q")
def deaf(ctx: Context) -> None:
    while True:
        try:
            tell(ctx, "deaf")
            time.sleep(0.01)
        except BaseException:
            pass

@app.job("writes-on", queue="q")
def writes_on(ctx: Context) -> str:
    if ctx.epoch > 1:
        tell(ctx, "again")
        return "again"
    tell(ctx, "began")
    while not ctx.cancelled:
        time.sleep(0.005)
    tell(ctx, ctx.why_stopped)
    try:
        ctx.save("late")
    except Error as error:
        tell(ctx, error.code)
    return "late"

@app.job("one", queue="q")
def one(ctx: Context) -> None:
    with open("one", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Permanent("TWO_AT_ONCE", "another run has the only slot") from None
        time.sleep(0.01)

@app.job("exits", queue="q")
def exits(ctx: Context) -> None:
    tell(ctx, "began")
    os._exit(7)

@app.job("kills-its-worker", queue="q")
def kills_its_worker(ctx: Context) -> None:
    tell(ctx, "began")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)

@app.job("saves", queue="q")
def saves(ctx: Context) -> int:
    seen = ctx.load(int)
    if seen is not None:
        return seen
    for number in (1, 2, 3):
        ctx.save(number)
    raise ValueError("right after the third")

@app.job("stops-by-failing", queue="q")
async def stops_by_failing(ctx: AsyncContext) -> None:
    tell(ctx, "began")
    while not ctx.cancelled:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("a retry would help") from None

@app.job("yields", queue="q")
async def yields(ctx: AsyncContext) -> None:
    tell(ctx, "began")
    while not ctx.should_stop:
        await asyncio.sleep(0.005)
    raise Yielded((ctx.load(int) or 0) + 1)

@app.job("sleeps", queue="q")
async def sleeps(ctx: AsyncContext) -> None:
    tell(ctx, "began")
    await asyncio.sleep(60)
"""


class Told(NamedTuple):
    """One thing that a handler wrote down: of which run, and when on the machine's monotonic clock."""

    job_id: str
    epoch: int
    what: str
    at: float


@contextmanager
def crew(
    folder: Path, url: str, *arguments: str, name: str = "worker", module: str = HANDLERS
) -> Iterator[WorkerProcess]:
    """A worker of one runner with four slots, unless the arguments say otherwise."""
    folder.mkdir(exist_ok=True)
    (folder / "testigo.toml").write_text("[worker]\nkill_grace_seconds = 0.3\ndrain_seconds = 10\n", "utf-8")
    usual = ["--runners", "1", "--slots", "4", "--queues", "q", "--term-seconds", str(TERM_SECONDS)]
    with worker(folder, url, module, *usual, *arguments, name=name) as it:
        yield it


def told(folder: Path, what: str | None = None) -> list[Told]:
    """What the handlers of the workers in this folder wrote down, in its order; all of it, or one word."""
    file = folder / "told"
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    all_of_it = [Told(job, int(epoch), word, float(at)) for job, epoch, word, at in map(str.split, lines)]
    return [each for each in all_of_it if what in (None, each.what)]


def facts_of(world: World, job_id: str, event: str) -> list[dict[str, object]]:
    """What the events of this type tell of a job, in order."""
    rows = world.query(
        "SELECT CAST(data AS jsonb) AS facts FROM testigo.event"
        " WHERE subject = CAST(:id AS uuid) AND type = :type ORDER BY sequence",
        id=job_id,
        type=event,
    )
    return [row.facts for row in rows]
