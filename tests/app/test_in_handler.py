"""What a handler may do with jobs: submit them through its worker, and nothing that waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testigo import App, AsyncContext, Context, Job, NotEnded, State
from testigo.authority.read.details import job as read_job
from testigo.errors import InHandler
from tests.app.handlers import Handlers
from tests.worker.kit import worker


def test_a_submission_in_a_handler_is_committed_at_once(app: App, handlers: Handlers) -> None:
    """It stays, though the run that made it fails; in both colours (spec P-25)."""

    @app.job("parent", attempts=1)
    def parent(ctx: Context) -> None:
        handlers.order.options(key="sync").submit(number=1)
        raise ValueError

    @app.job("async parent", attempts=1)
    async def async_parent(ctx: AsyncContext) -> None:
        await handlers.order.options(key="async").submit_async(number=2)
        await handlers.order.submit_many_async([{"number": 3}, {"number": 4}])
        raise ValueError

    parent.submit()
    async_parent.submit()
    assert app.run_until_idle() == 6
    assert handlers.order.options(key="sync").submit(number=1).result(timeout=0).number == 1
    assert handlers.order.options(key="async").submit(number=2).result(timeout=0).number == 2


def test_a_child_of_ctx_submit_is_committed_with_the_run(app: App, handlers: Handlers) -> None:
    """A run that fails submits nothing; the one that succeeds does, and has the child's job in hand."""

    @app.job("parent")
    async def parent(ctx: AsyncContext) -> str:
        child = await ctx.submit(handlers.order.options(parents=[ctx.job_id]), number=ctx.failures)
        if not ctx.failures:
            raise ValueError
        return child.id

    job = parent.options(backoff=None, attempts=2).submit()
    app.run_until_idle()
    with pytest.raises(NotEnded):
        job.result(timeout=0)
    assert app.database.run(lambda c: c.exec_driver_sql("SELECT count(*) FROM testigo.job").scalar()) == 1
    app.database.run(lambda c: c.exec_driver_sql("UPDATE testigo.job SET due_at = now()"))
    app.run_until_idle()
    assert handlers.order.job(job.result(timeout=0)).result(timeout=0).number == 1


def test_a_handler_waits_for_no_job_and_controls_none(app: App, handlers: Handlers) -> None:
    """It would keep its slot from the job that it waits for (IN_HANDLER)."""
    elsewhere = handlers.order.submit(number=1)

    @app.job("waiting")
    def waiting(ctx: Context) -> list[str]:
        job = handlers.order.submit(number=2)
        asked: list[Callable[[], object]] = [job.result, job.wait, job.state, elsewhere.cancel, lambda: app.database]
        return [_refusal(each) for each in asked]

    @app.job("awaiting")
    async def awaiting(ctx: AsyncContext) -> list[str]:
        refused = []
        for asked in (elsewhere.result_async, elsewhere.wait_async, elsewhere.state_async, elsewhere.cancel_async):
            try:
                await asked()
            except InHandler as error:
                refused.append(error.code)
        return refused

    jobs: list[Job[list[str]]] = [waiting.submit(), awaiting.submit()]
    app.run_until_idle()
    assert jobs[0].result(timeout=0) == ["IN_HANDLER"] * 5
    assert jobs[1].result(timeout=0) == ["IN_HANDLER"] * 4


def test_a_coroutine_awaits_its_submissions(app: App, handlers: Handlers) -> None:
    """The answer to a blocking one would come through the very loop that waits for it (IN_HANDLER)."""

    @app.job("blocking")
    async def blocking(ctx: AsyncContext) -> str:
        return _refusal(lambda: handlers.order.submit(number=1))

    job = blocking.submit()
    app.run_until_idle()
    assert job.result(timeout=0) == "IN_HANDLER"


def test_a_job_that_is_made_for_later_is_bound_to_no_connection(server_url: str, handlers: Handlers) -> None:
    """`ctx.submit` commits with the run, and with nobody else's transaction (INVALID)."""
    with psycopg.connect(server_url) as connection, pytest.raises(Exception, match="bound to no connection"):
        handlers.order.options(connection=connection).new_job(number=1)


def test_an_app_in_a_runner_is_not_connected(database_url: str) -> None:
    """Outside any run, as where a module is loaded, a runner can submit nothing but on a caller's connection."""
    done = subprocess.run(
        [sys.executable, "-c", IN_RUNNER, database_url],
        env={**os.environ, "TESTIGO_RUNNER": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["IN_HANDLER", "IN_HANDLER", "36"], "")


IN_RUNNER = """
import sys
import psycopg
from testigo import App, Context, Error

app = App("shop", sys.argv[1])

@app.job("work")
def work(ctx: Context) -> None: ...

for asked in (work.submit, work.job("00000000-0000-7000-8000-000000000000").state):
    try:
        asked()
    except Error as error:
        print(error.code)
with psycopg.connect(sys.argv[1]) as connection:
    print(len(work.options(connection=connection).submit().id))
"""


def test_a_runner_s_handlers_submit_through_their_keeper(app: App, database_url: str, tmp_path: Path) -> None:
    """The same in a real worker: in both colours, in a thread with a copy of the context, and nothing that waits."""
    parents = [app.job(kind)(_nothing) for kind in ("sync", "async")]
    jobs = [parent.submit() for parent in parents]
    with worker(tmp_path, database_url, PARENTS, "--runners", "1") as process:
        states = [job.wait(timeout=60) for job in jobs]
        assert states == [State.SUCCEEDED] * 2, process.log
        child = app.job("child")(_nothing)
        outputs = [app.database.run(read_job, job.id, documents=True).documents for job in jobs]
        for documents in outputs:
            assert documents is not None
            *children, waited, threaded = json.loads(documents.output or "[]")
            assert waited == "IN_HANDLER"
            assert threaded == "IN_HANDLER"
            assert [child.job(one).wait(timeout=60) for one in children] == [State.SUCCEEDED] * len(children)


PARENTS = """
import asyncio
import contextvars
import threading
from testigo import App, AsyncContext, Context, Error

app = App("shop")

@app.job("child")
def child(ctx: Context) -> None: ...

def refused(asked) -> str:
    try:
        asked()
    except Error as error:
        return error.code
    return "nothing was refused"

def in_thread(work) -> object:
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]

@app.job("sync")
def sync(ctx: Context) -> list[str]:
    job = child.submit()
    context = contextvars.copy_context()
    threaded = in_thread(lambda: context.run(child.submit).id)
    return [job.id, threaded, refused(job.result), in_thread(lambda: refused(child.submit))]

@app.job("async")
async def on_loop(ctx: AsyncContext) -> list[str]:
    jobs = [await child.submit_async(), *await child.submit_many_async([{}, {}])]
    threaded = await asyncio.to_thread(child.submit)
    return [*(job.id for job in jobs), threaded.id, refused(jobs[0].state), refused(child.submit)]
"""


def _nothing(ctx: Context) -> None:
    """Nothing."""


def _refusal(asked: Callable[[], Any]) -> str:
    try:
        asked()
    except InHandler as error:
        return error.code
    return "nothing was refused"
