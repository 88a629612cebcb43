"""What a handler says of its run is kept without what looks like a secret, however it says it."""

from __future__ import annotations

from pathlib import Path

from testigo import App, Context
from testigo.worker.inline import InlineWorker
from tests.worker.kit import await_end, await_state, new, worker
from tests.world import World

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
MARKER = "[redacted:github-token]"
MODULE = f"""
import logging
from testigo import App, AsyncContext, Blocked, Context, Permanent, RetryAfter

app = App("jobs")
SAID = "GET /x?key={TOKEN} said 401"

@app.job("raises", queue="q", attempts=1)
async def raises(ctx: AsyncContext) -> None:
    raise RuntimeError(SAID)

@app.job("raises-in-thread", queue="q", attempts=1)
def raises_in_thread(ctx: Context) -> None:
    try:
        raise KeyError(SAID)
    except KeyError as error:
        raise ValueError("a cause tells more") from error

@app.job("says-much", queue="q", attempts=1)
def says_much(ctx: Context) -> None:
    raise RuntimeError("x" * 8_000 + SAID + "y" * 16_300 + "\\n" + SAID)

@app.job("gives-up", queue="q")
async def gives_up(ctx: AsyncContext) -> None:
    raise Permanent("NO", SAID)

@app.job("wants-later", queue="q", attempts=1)
async def wants_later(ctx: AsyncContext) -> None:
    raise RetryAfter(0, SAID)

@app.job("blocks", queue="q")
async def blocks(ctx: AsyncContext) -> None:
    raise Blocked(SAID, needs=SAID)

@app.job("logs", queue="q")
async def logs(ctx: AsyncContext) -> None:
    await ctx.progress(1, note=SAID)
    await ctx.log(SAID)
    logging.getLogger("shop").warning("header %s", {{"Authorization": "Bearer {TOKEN}"}})
    try:
        raise RuntimeError(SAID)
    except RuntimeError:
        logging.exception("it failed")
"""


def test_no_table_holds_a_secret_that_a_handler_said(world: World, tmp_path: Path, database_url: str) -> None:
    """In an exception, its cause, its traceback, a reason, a note, a line: the words around it are kept (spec D-14)."""
    with worker(tmp_path, database_url, MODULE, "--runners", "1", "--queues", "q") as it:
        it.ready()
        kinds = ("raises", "raises-in-thread", "says-much", "gives-up", "wants-later", "logs")
        jobs = world.submit(*(new(kind) for kind in kinds))
        (blocked,) = world.submit(new("blocks"))
        assert await_end(world, *jobs) == ["permanent_failure"] * 5 + ["succeeded"]
        await_state(world, blocked, "blocked_by_quality")
    assert world.holders(TOKEN[-12:]) == set()
    assert world.holders(f"GET /x?key={MARKER} said 401") == {"job", "event", "progress", "job_log"}
    assert all(MARKER in world.job(job).error for job in jobs[:5])


def test_what_runs_in_this_very_process_is_as_discreet(world: World, database_url: str) -> None:
    """Its lines, its progress and its error go another way to the database."""
    with_app = App("shop", database_url)

    @with_app.job("says", attempts=1)
    def says(ctx: Context) -> None:
        ctx.log(f"line {TOKEN}")
        ctx.progress(1, note=f"note {TOKEN}")
        raise RuntimeError(f"error {TOKEN}")

    says.submit()
    with InlineWorker(with_app.database, with_app.registry) as inline:
        assert inline.step()
    with_app.close()
    assert world.holders(TOKEN) == set()
    assert world.holders(MARKER) == {"job", "event", "progress", "job_log"}
