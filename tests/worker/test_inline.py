"""A worker in this very process holds what it claims as safely as any other."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testigo import App, AsyncContext, Context, JobCancelled, JobFailed, State
from testigo.authority.actions import Action, SessionId
from testigo.authority.expire import expire
from testigo.authority.read.details import job as read_job
from testigo.authority.read.records import late_results
from testigo.authority.sessions import NewSession, close_session, open_session
from testigo.errors import LeaseLost, SessionReplaced
from testigo.worker.inline import InlineWorker
from tests.worker.kit import await_state, new, worker
from tests.world import World


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    """An App whose installation is the test's own."""
    one = App("shop", database_url)
    yield one
    one.close()


def test_a_cancel_reaches_a_coroutine_where_it_waits(app: App, world: World) -> None:
    """Its holder is woken at once, and the job ends as cancelled (Promise 7)."""
    waits = threading.Event()

    @app.job("waiting")
    async def waiting(ctx: AsyncContext) -> None:
        waits.set()
        await asyncio.Event().wait()

    job = waiting.submit()

    def cancel() -> None:
        waits.wait()
        job.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with InlineWorker(app.database, app.registry) as worker:
        assert worker.step()
    canceller.join()
    with pytest.raises(JobCancelled):
        job.result(timeout=0)


def test_a_cancel_is_seen_by_a_function_that_looks(app: App) -> None:
    """What it returns nevertheless is accepted, for it was first to answer (spec D-20)."""

    @app.job("looking")
    def looking(ctx: Context) -> str:
        threading.Thread(target=job.cancel).start()
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        return str(ctx.why_stopped)

    job = looking.submit()
    app.run_until_idle()
    assert job.result(timeout=0) == "cancelled"


def test_a_ctrl_c_gives_the_run_back_and_goes_on(app: App) -> None:
    """In both colours: it ends the test or the process that runs the job, and is no failure of it."""

    @app.job("sync")
    def sync(ctx: Context) -> int:
        if ctx.epoch == 1:
            signal.raise_signal(signal.SIGINT)
        return ctx.failures

    @app.job("async")
    async def on_loop(ctx: AsyncContext) -> int:
        if ctx.epoch == 1:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        return ctx.failures

    for handler in (sync, on_loop):
        job = handler.submit()
        with pytest.raises(KeyboardInterrupt):
            app.run_until_idle()
        assert job.state() is State.READY
        app.run_until_idle()
        assert job.result(timeout=0) == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_lost_lease_computed_is_kept_as_evidence(app: App, world: World) -> None:
    """The save is refused, the result changes nothing, and a session that follows runs the job again (spec B-16)."""
    refused: list[str] = []

    @app.job("losing")
    def losing(ctx: Context) -> int:
        if ctx.epoch == 1:
            world.db.run(close_session, _session_of(world, ctx.job_id))
            world.db.run(expire)
            try:
                ctx.save(1)
            except LeaseLost as error:
                refused.append(error.code)
        return ctx.epoch

    job = losing.submit()
    with InlineWorker(app.database, app.registry) as worker:
        while job.state() is not State.SUCCEEDED:
            worker.step()
    assert job.result(timeout=0) == 2
    assert len(refused) == 1
    (late,) = world.db.run(late_results, job.id).items
    assert late.epoch == 1


def test_an_end_that_is_refused_is_a_failure_of_its_run(app: App) -> None:
    """A child whose key names other work takes its parent's success with it, and nothing else (KEY_CONFLICT)."""

    @app.job("child")
    def child(ctx: Context, n: int) -> None:
        """Nothing."""

    @app.job("parent", attempts=1)
    def parent(ctx: Context) -> None:
        ctx.submit(child.options(key="k"), n=2)

    child.options(key="k").submit(n=1)
    job = parent.submit()
    app.run_until_idle()
    with pytest.raises(JobFailed) as raised:
        job.result(timeout=0)
    assert raised.value.error_code == "KEY_CONFLICT"


def test_what_a_run_tells_of_itself_is_kept(app: App) -> None:
    """Progress, log lines, and when it began and how long it took (spec B-12, P-27)."""

    @app.job("telling")
    async def telling(ctx: AsyncContext) -> None:
        await ctx.progress(1, total=2, note="half")
        await ctx.log("a line", level="warning")
        await ctx.log("another")
        await ctx.progress(2, total=2)

    job = telling.submit()
    app.run_until_idle()
    progress = app.database.run(read_job, job.id).progress
    assert progress is not None
    assert (progress.done, progress.total) == (2, 2)


def test_it_serves_until_it_is_told_to_leave(app: App) -> None:
    """Jobs that come later are found; the session is closed at the end, and nothing is left owned."""
    leaving = threading.Event()

    @app.job("work")
    def work(ctx: Context, last: bool) -> None:
        if last:
            leaving.set()

    first = work.submit(last=False)

    def serve() -> None:
        with InlineWorker(app.database, app.registry, agent="debugger") as worker:
            worker.serve(leaving)

    server = threading.Thread(target=serve)
    server.start()
    assert first.wait(timeout=90) is State.SUCCEEDED
    last = work.submit(last=True)
    assert last.wait(timeout=90) is State.SUCCEEDED
    server.join(timeout=90)
    assert not server.is_alive()


def test_a_worker_whose_place_was_taken_stops(app: App, world: World) -> None:
    """By an error that says so (SESSION_REPLACED)."""

    @app.job("work")
    def work(ctx: Context) -> None:
        """Nothing."""

    work.submit()
    taking = NewSession("debugger", ("q",), ("work",), replace=True, exclusive=True)
    with InlineWorker(app.database, app.registry, agent="debugger") as worker:
        world.db.run(open_session, taking, action=Action("debugger"))
        with pytest.raises(SessionReplaced):
            worker.serve(threading.Event())


def test_a_process_that_dies_with_its_handler_loses_nothing(world: World, database_url: str, tmp_path: Path) -> None:
    """`--inline` has no keeper beside it; the next one on this machine takes the job back at once (field case R19)."""
    (job,) = world.submit(new("deadly"))
    with worker(tmp_path, database_url, DEADLY, "--inline") as first:
        assert first.wait() == -signal.SIGKILL
    with worker(tmp_path, database_url, DEADLY, "--inline") as second:
        await_state(world, job, "succeeded")
        second.signal(signal.SIGTERM)
        assert second.wait() == 0
        assert "runs deadly in this process, queues q" in second.log
    assert world.events(job) == ["job.requested", "job.lost", "job.completed"]


DEADLY = """
import os
import signal
from testigo import App, Context

app = App("shop")

@app.job("deadly", queue="q")
def deadly(ctx: Context) -> None:
    if not ctx.losses:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def _session_of(world: World, job_id: str) -> SessionId:
    return SessionId(str(world.job(job_id).session_id))
