"""An App on Django's database, which joins the transaction that Django has open."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections

from testigo.app import App as PlainApp
from testigo.authority.actions import JobId
from testigo.authority.submissions import NewJob
from testigo.contrib.django.place import place
from testigo.worker.context import current_port
from testigo.worker.handlers import HandlerSpec, Registry

__all__ = ["App"]


class App(PlainApp):
    """A `testigo.App` whose installation is in the database that `settings.TESTIGO` names.

    Inside `transaction.atomic()`, `submit` and `submit_many` write through Django's own connection: the jobs
    exist if and only if the block commits, and no hook is needed. Outside of it they commit at once. Before
    and after each run of a handler, Django's connections that are broken or too old are closed, as they are
    around a request.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.registry = _Registry()

    def place(self) -> tuple[str | None, str | None]:
        """Django's database as it is named now: in Django's tests that is the test's own."""
        found = place()
        return found.url, found.schema

    def submit(self, jobs: Sequence[NewJob], *, connection: object = None) -> list[JobId]:
        """Submit jobs, within the transaction that Django has open, if it has one; else as `testigo.App`."""
        if connection is None and current_port() is None:
            django = connections[place().alias]
            connection = django if django.in_atomic_block else None
        return super().submit(jobs, connection=connection)


class _Registry(Registry):
    """Handlers that begin and end with fresh connections."""

    def add(self, spec: HandlerSpec) -> None:
        wrapped = _refreshing_async if spec.is_async else _refreshing
        super().add(replace(spec, function=wrapped(spec.function)))


def _refreshing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return run


def _refreshing_async(function: Callable[..., Any]) -> Callable[..., Any]:
    refresh = sync_to_async(close_old_connections)  # in the thread that Django's asynchronous queries run in

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        await refresh()
        try:
            return await function(*args, **kwargs)
        finally:
            await refresh()

    return run
