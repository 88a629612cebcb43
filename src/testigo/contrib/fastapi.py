"""testigo in a FastAPI application: connected while it serves, jobs by their ids, refusals as problems.

    api = FastAPI(lifespan=lifespan(app))
    api.add_exception_handler(Error, problem)

    @api.get("/videos/{job_id}")
    async def show(job: Annotated[Job[str], Depends(job_of(app, transcode))]) -> str:
        return await job.state_async()

It needs FastAPI: `pip install 'testigo[fastapi]'`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from uuid import UUID

try:
    from fastapi import FastAPI, Path, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.responses import JSONResponse
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "testigo.contrib.fastapi needs FastAPI: pip install 'testigo[fastapi]'", name=error.name
    ) from error

from testigo.app import App, Bound
from testigo.authority.actions import JobId
from testigo.authority.read.details import job as read_job
from testigo.errors import Broken, Busy, Error, NotFound, Unfulfilled
from testigo.jobs import Job
from testigo.worker.endings import Degraded

__all__ = ["job_of", "lifespan", "problem"]

R = TypeVar("R")

_log = logging.getLogger("testigo.contrib.fastapi")

RETRY_AFTER_SECONDS = 1
"""What a client is told to wait when a passing hindrance refused its request."""


def lifespan(*apps: App, migrate: bool = False) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """The lifespan of an application that submits jobs of these Apps.

    They connect before the first request and close after the last, so that a database which is away or has
    another schema is told of when the server starts. `migrate` brings the schema up to date first, for
    development. Raises, at the start, what `Database.run` and `Database.migrate` raise. Within a lifespan
    of your own: `async with lifespan(app)(api): …`.
    """

    @asynccontextmanager
    async def connected(_api: FastAPI) -> AsyncIterator[None]:
        try:
            for app in apps:
                await run_in_threadpool(_open, app, migrate)
            yield
        finally:
            for app in apps:
                await run_in_threadpool(app.close)

    return connected


def job_of(app: App, handler: Bound[..., R | Degraded[R]]) -> Callable[[UUID], Awaitable[Job[R]]]:
    """A dependency: the job of this handler's kind whose id is the path's parameter `job_id`.

    Raises `NotFound` where there is no such job, and as much for one of another kind: an id from outside
    opens no job but those that the route is for.
    """

    async def found(job_id: Annotated[UUID, Path()]) -> Job[R]:
        named = JobId(str(job_id))
        client = app.client()
        view = await client.apart(partial(app.database.run, read_job, named))
        if view.kind != handler.kind:
            raise NotFound(f"There is no {handler.kind!r} job {named}.", job=named)
        return handler.job(named)

    return found


def problem(_request: Request, error: Exception) -> JSONResponse:
    """The answer to a request that testigo refused, as `application/problem+json` (RFC 9457).

    Its status is the error's own; `code`, `field`, `limit` and `remedy` are further members. What is wrong
    with the installation is logged, and the client told no more than its code; nor is it told what a handler
    raised, which was not written for strangers. For `api.add_exception_handler(Error, problem)`.
    """
    if not isinstance(error, Error):
        raise error
    status = HTTPStatus(error.http_status)
    told: dict[str, Any] = {"title": status.phrase, "status": int(status), "code": error.code}
    if isinstance(error, Broken):
        _log.error("%s", error, exc_info=error)
    elif isinstance(error, Unfulfilled):
        told |= {"detail": f"The job {error.job_id} has ended without an output."}
    else:
        told |= {"detail": error.message, "remedy": error.remedy}
        told |= {"field": error.field} if error.field else {}
        told |= {"limit": error.limit} if error.limit else {}
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if isinstance(error, Busy) else None
    return JSONResponse(told, int(status), headers, media_type="application/problem+json")


def _open(app: App, migrate: bool) -> None:
    if migrate:
        app.database.migrate()
    app.database.run(_nothing)


def _nothing(_connection: object) -> None:
    """Enough to be refused: the first command looks at the server and the schema."""
