"""testigo: work that cannot be lost, results that can be proved.

A durable-work engine on PostgreSQL. Handlers are functions, and a submitted job is run to its end:

    from testigo import App, AsyncContext

    app = App("media")

    @app.job("media.transcode", attempts=5)
    async def transcode(ctx: AsyncContext, path: str, height: int = 720) -> str: ...

    job = transcode.submit(path="a.mp4")

Below that, every change of truth is a command, sent through one door: `Database.run(submit, …)`. Each name
is imported when it is first used, so that a runner loads no driver of a database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testigo.app import App, AsyncHandler, Handler
    from testigo.authority.actions import Action
    from testigo.authority.submissions import NewJob
    from testigo.authority.submit import submit, submit_many, submit_within
    from testigo.errors import Error, JobCancelled, JobFailed, NotEnded
    from testigo.jobs import Job
    from testigo.rules.documents import encode, parse
    from testigo.rules.graph import Policy
    from testigo.rules.retries import Constant, Exponential, Listed
    from testigo.rules.states import State
    from testigo.store.connections import run_within, run_within_async
    from testigo.store.database import AsyncDatabase, Database
    from testigo.worker.context import AsyncContext, Context
    from testigo.worker.endings import Blocked, Degraded, Permanent, RetryAfter, Yielded

__all__ = [
    "Action",
    "App",
    "AsyncContext",
    "AsyncDatabase",
    "AsyncHandler",
    "Blocked",
    "Constant",
    "Context",
    "Database",
    "Degraded",
    "Error",
    "Exponential",
    "Handler",
    "Job",
    "JobCancelled",
    "JobFailed",
    "Listed",
    "NewJob",
    "NotEnded",
    "Permanent",
    "Policy",
    "RetryAfter",
    "State",
    "Yielded",
    "encode",
    "parse",
    "run_within",
    "run_within_async",
    "submit",
    "submit_many",
    "submit_within",
]

_HOMES = {
    "testigo.app": ("App", "AsyncHandler", "Handler"),
    "testigo.authority.actions": ("Action",),
    "testigo.authority.submissions": ("NewJob",),
    "testigo.authority.submit": ("submit", "submit_many", "submit_within"),
    "testigo.errors": ("Error", "JobCancelled", "JobFailed", "NotEnded"),
    "testigo.jobs": ("Job",),
    "testigo.rules.documents": ("encode", "parse"),
    "testigo.rules.graph": ("Policy",),
    "testigo.rules.retries": ("Constant", "Exponential", "Listed"),
    "testigo.rules.states": ("State",),
    "testigo.store.connections": ("run_within", "run_within_async"),
    "testigo.store.database": ("AsyncDatabase", "Database"),
    "testigo.worker.context": ("AsyncContext", "Context"),
    "testigo.worker.endings": ("Blocked", "Degraded", "Permanent", "RetryAfter", "Yielded"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'testigo' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
