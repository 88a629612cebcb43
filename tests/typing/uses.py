"""What type checkers accept of the API and what they refuse: mypy and pyright, both strict, agree on every line.

A line that has to be refused says so by a comment, and a comment that nothing needs is refused as well. It
is never run.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

from testigo import App, AsyncContext, Constant, Context, Degraded, Job, Policy, State

app = App("typing")


@dataclass
class Transcoded:
    """An output."""

    path: str


@app.job("async", queue="media", attempts=5, timeout=60, backoff=Constant(1), permanent_on=(ValueError, KeyError))
async def transcode(ctx: AsyncContext, path: str, height: int = 720) -> Transcoded:
    """A coroutine."""
    assert_type(ctx.load(Transcoded), Transcoded | None)
    await ctx.save({"at": 1})
    await ctx.progress(1, total=2, note="half")
    assert_type(await ctx.submit(plain, "text"), Job[int])
    assert_type(await ctx.submit(plain.options(key="k"), text="text"), Job[int])
    await ctx.submit(plain, 5)  # type: ignore[arg-type]
    await ctx.submit(plain, words="text")  # type: ignore[call-arg]
    return Transcoded(path)


@app.job("sync")
def plain(ctx: Context, text: str, *, loud: bool = False) -> int:
    """A function."""
    ctx.save(1)
    assert_type(ctx.submit(nothing), Job[None])
    return len(text)


@app.job("degraded")
async def degraded(ctx: AsyncContext) -> Transcoded | Degraded[Transcoded]:
    """A coroutine that may end degraded."""
    return Degraded(Transcoded("a"), limitations=["b"])


@app.job("optional")
def optional(ctx: Context) -> int | Degraded[int | None] | None:
    """A function that may end degraded, and may return nothing."""
    return None


@app.job("nothing", isolation="process")
def nothing(ctx: Context) -> None:
    """A function that returns nothing."""


@app.job("refused", isolation="thread")  # type: ignore[arg-type]
def isolated(ctx: Context) -> None:
    """An option of no known value."""


@app.job("no context")  # type: ignore[arg-type]
def contextless(path: str) -> None:
    """No context."""


@app.job("another context")  # type: ignore[arg-type]
def confused(ctx: AsyncContext) -> int:
    """The wrong colour."""
    return 1


def submits() -> None:
    """Arguments are the handler's own, and the job has its type."""
    assert_type(transcode.submit("a.mp4"), Job[Transcoded])
    assert_type(transcode.submit(path="a.mp4", height=480).result(timeout=60), Transcoded)
    assert_type(plain.submit("a", loud=True).result(), int)
    assert_type(degraded.submit().result(), Transcoded)
    assert_type(optional.submit().result(), int | None)
    assert_type(nothing.submit(), Job[None])
    transcode.submit()  # type: ignore[call-arg]
    transcode.submit(5)  # type: ignore[arg-type]
    transcode.submit("a.mp4", width=1)  # type: ignore[call-arg]
    transcode.submit("a.mp4", key="k")  # type: ignore[call-arg]
    plain.submit("a", True)  # type: ignore[call-arg]
    print(plain.submit("a").result().path)  # type: ignore[attr-defined]


async def submits_async() -> None:
    """The same in the other colour."""
    assert_type(await transcode.submit_async("a.mp4"), Job[Transcoded])
    assert_type(await (await degraded.submit_async()).result_async(timeout=1), Transcoded)
    assert_type(await (await degraded.submit_async()).wait_async(), State)
    await transcode.submit_async(path=5)  # type: ignore[arg-type]


def submits_with_options(at: datetime, connection: Any) -> None:
    """Options keep the handler's signature."""
    bound = transcode.options(key="k", run_at=at, priority=1, tags=["a"], policy=Policy.WAIT, connection=connection)
    assert_type(bound.submit("a.mp4"), Job[Transcoded])
    assert_type(bound.options(parents=[plain.submit("a"), "an id"]).submit(path="a"), Job[Transcoded])
    assert_type(degraded.options(queue="q").submit().result(), Transcoded)
    bound.submit(5)  # type: ignore[arg-type]
    transcode.options(run_at="noon")  # type: ignore[arg-type]
    transcode.options(path="a.mp4")  # type: ignore[call-arg]
    bound("a.mp4")  # type: ignore[operator]


def submits_many(rows: list[Mapping[str, Any]]) -> None:
    """A batch is a list of jobs of one type."""
    assert_type(transcode.submit_many([{"path": "a"}, {"path": "b", "height": 1}]), list[Job[Transcoded]])
    assert_type(degraded.submit_many(rows), list[Job[Transcoded]])
    transcode.submit_many(["a.mp4"])  # type: ignore[list-item]


def calls(ctx: Context, async_ctx: AsyncContext) -> None:
    """A handler is still its function, for tests of one's own."""
    assert_type(plain(ctx, "a", loud=True), int)
    coroutine: Coroutine[Any, Any, Transcoded] = transcode(async_ctx, "a.mp4")
    coroutine.close()
    assert_type(optional(ctx), int | Degraded[int | None] | None)
    plain("a")  # type: ignore[arg-type, call-arg]
    plain(async_ctx, "a")  # type: ignore[arg-type]


def finds(job_id: str) -> None:
    """A job that is found again by its id has its type as well."""
    assert_type(transcode.job(job_id), Job[Transcoded])
    wider: Job[object] = transcode.job(job_id)
    narrower: Job[str] = wider  # type: ignore[assignment]
    print(narrower)
