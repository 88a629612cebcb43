"""Running jobs in the test's own process until none is left to run."""

from __future__ import annotations

import asyncio
import threading

import pytest

from testigo import App, AsyncContext, Constant, Context, JobFailed, NotEnded, State, Yielded
from testigo.authority.actions import Action
from testigo.authority.pause import Scope, pause
from testigo.errors import Invalid
from testigo.testing import Trial, run_until_idle


def test_nothing_to_run_is_nothing_run(app: App) -> None:
    """Without a job, and without a handler."""
    assert app.run_until_idle() == 0


def test_everything_that_can_run_has_run(app: App) -> None:
    """Whatever its queue, and whatever its runs submitted: at once, or with their success."""
    ran = []

    @app.job("leaf")
    def leaf(ctx: Context, name: str) -> None:
        ran.append(name)

    @app.job("tree", queue="trees")
    async def tree(ctx: AsyncContext) -> None:
        await leaf.options(queue="elsewhere").submit_async(name="at once")
        await ctx.submit(leaf, name="with its success")
        ran.append("tree")

    first = tree.submit()
    leaf.options(parents=[first]).submit(name="after it")
    assert run_until_idle(app) == 4
    assert ran[0] == "tree"
    assert sorted(ran[1:]) == ["after it", "at once", "with its success"]


def test_a_failure_is_retried_when_its_time_has_come(app: App, testigo: Trial) -> None:
    """What waits is left, until the clock is moved; at the last attempt the job has failed."""

    @app.job("failing", attempts=3, backoff=Constant(60))
    def failing(ctx: Context) -> None:
        raise ValueError(f"failure {ctx.failures + 1}")

    job = failing.submit()
    for waits in (59, 1, 60):
        assert app.run_until_idle() == (0 if waits == 1 else 1)
        assert job.state() is State.RETRY_WAITING
        testigo.clock.advance(seconds=waits)
    assert app.run_until_idle() == 1
    with pytest.raises(JobFailed, match="failure 3"):
        job.result(timeout=0)


def test_handlers_run_where_a_debugger_finds_them(app: App) -> None:
    """In the very thread that called, coroutines as well; all of these on one loop."""
    threads, loops = [], []

    @app.job("sync")
    def sync(ctx: Context) -> None:
        threads.append(threading.current_thread())

    @app.job("async")
    async def on_loop(ctx: AsyncContext) -> None:
        threads.append(threading.current_thread())
        loops.append(asyncio.get_running_loop())

    sync.submit()
    on_loop.submit_many([{}, {}])
    app.run_until_idle()
    assert threads == [threading.current_thread()] * 3
    assert loops[0] is loops[1]


def test_an_asynchronous_test_has_a_thread_run_its_jobs(app: App) -> None:
    """Its own loop goes on meanwhile; called on the loop itself it is refused (INVALID)."""

    @app.job("work")
    async def work(ctx: AsyncContext) -> int:
        return 7

    async def test() -> int:
        job = await work.submit_async()
        with pytest.raises(Invalid, match="to_thread"):
            app.run_until_idle()
        result, runs = await asyncio.gather(job.result_async(timeout=90), asyncio.to_thread(app.run_until_idle))
        return result + runs

    assert asyncio.run(test()) == 8


def test_what_cannot_run_is_left_alone(app: App, testigo: Trial) -> None:
    """A kind of another App, a paused queue, a job for later, one that is blocked by its parent."""

    @app.job("work")
    def work(ctx: Context) -> None:
        """Nothing."""

    other = App("other")
    testigo.use(other)
    theirs = other.job("theirs")(work.__wrapped__)  # type: ignore[attr-defined]
    left = [
        theirs.submit(),
        work.options(queue="paused").submit(),
        work.options(parents=[theirs.submit()]).submit(),
    ]
    testigo.database.run(pause, Scope.QUEUE, "paused", action=Action("tester"))
    assert app.run_until_idle() == 0
    assert {job.state() for job in left} == {State.READY, State.INPUTS_PENDING}


def test_work_without_end_is_not_waited_for(app: App) -> None:
    """A handler that yields for ever fails the test, and hangs it not (NOT_ENDED)."""

    @app.job("yielding")
    def yielding(ctx: Context) -> None:
        raise Yielded((ctx.load(int) or 0) + 1)

    job = yielding.submit()
    with pytest.raises(NotEnded):
        run_until_idle(app, runs_max=20)
    assert job.state() is State.CHECKPOINTED
