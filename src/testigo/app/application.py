"""The App itself: its name, its handlers, and its way to the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testigo.app.bound import checked, given
from testigo.app.registering import Registering
from testigo.authority.actions import JobId
from testigo.authority.submissions import How, NewJob
from testigo.errors import InHandler, KeyConflict
from testigo.rules import fields
from testigo.rules.retries import Backoff
from testigo.worker.context import answered, current_port
from testigo.worker.handlers import Isolation, Registry

if TYPE_CHECKING:
    from testigo.client import Client
    from testigo.store.database import Database

__all__ = ["App"]


class App:
    """A named set of handlers, and the way to submit their jobs.

    `name` is the client of its submissions: a key is unique within it and the kind (spec D-01). `url` is
    `postgresql://…` or `embedded:DIR`, `schema` the installation's; without them the environment, the
    nearest `testigo.toml` or `pyproject.toml`, and the default are asked, once the App first connects.
    Raises `Invalid` for a name that cannot be.
    """

    def __init__(self, name: str, url: str | None = None, schema: str | None = None) -> None:
        self.name = fields.name(name, field="app.name")
        self.url = url
        self.schema = schema
        self.registry = Registry()
        self._opening = threading.Lock()
        self._opened: Client | None = None

    def job(
        self,
        kind: str,
        *,
        queue: str = "default",
        attempts: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        crash_limit: int | None = None,
        delay_limit_seconds: float | None = None,
        cost_limit: float | None = None,
        priority: int | None = None,
        isolation: Isolation = "shared",
        permanent_on: tuple[type[Exception], ...] = (),
    ) -> Registering:
        """Make a function the handler of a kind, which is named here and does not follow the module.

        `attempts` are failures, `crash_limit` losses, the one that reaches it being the last; `timeout` is
        the hard limit of one run in seconds; `delay_limit_seconds` bounds all waits between runs, and
        `cost_limit` their cost; of `priority`, lower is sooner. With `isolation="process"` each run has a
        process of its own. An exception of the classes in `permanent_on` is never retried. What is None
        takes the default (`settings.Contract`). Raises `Invalid` for an option out of range, and the decorator
        for a function that cannot be a handler, `StateConflict` for the second one of a kind.
        """
        contract = given(
            queue=queue,
            attempts=attempts,
            timeout_seconds=timeout,
            backoff=backoff,
            crash_limit=crash_limit,
            delay_limit_seconds=delay_limit_seconds,
            cost_limit=cost_limit,
            priority=priority,
        )
        checked(NewJob(kind, **contract))
        return Registering(self, kind, contract, isolation, permanent_on)

    def submit(self, jobs: Sequence[NewJob], *, connection: object = None) -> list[JobId]:
        """Submit jobs that `new_job` made, of any of the kinds, in one statement; their ids, in the order given.

        Inside a handler they go through the worker and are committed at once. Raises as `Bound.submit` does;
        `KeyConflict` is the answer of one row, and the others are accepted (decision record 0009).
        """
        port = current_port()
        if port is None or connection is not None:
            return _ids(jobs, self._client().submit(jobs, connection))
        if _is_on_a_loop():  # the answer would come through the very loop that waits for it
            raise InHandler("A coroutine awaits its submissions.", remedy="await submit_async")
        return _ids(jobs, port.submit(jobs).result())

    async def submit_async(self, jobs: Sequence[NewJob], *, connection: object = None) -> list[JobId]:
        """`submit` for an asynchronous caller; a `connection` is then asynchronous as well."""
        port = current_port()
        if port is None or connection is not None:
            return _ids(jobs, await self._client().submit_async(jobs, connection))
        rows = await answered(port.submit(jobs))
        return _ids(jobs, rows)

    @property
    def database(self) -> Database:
        """The installation that this App uses; `app.database.migrate()` brings its schema up to date.

        An embedded one is brought up to date by its first use. Raises `InHandler` in a handler.
        """
        return self.client().database

    def place(self) -> tuple[str | None, str | None]:
        """The URL and schema that count before any other; asked for when the App connects."""
        return self.url, self.schema

    def run_until_idle(self) -> int:
        """Run this App's jobs in this process until none is left to run now; see `testigo.testing`."""
        from testigo.testing import run_until_idle

        return run_until_idle(self)

    @contextmanager
    def connected_to(self, url: str, schema: str) -> Iterator[None]:
        """Use another installation meanwhile, whatever the App was made with: for tests."""
        from testigo.client import Client

        with self._opening:
            before, self._opened = self._opened, Client(self.name, url, schema)
        try:
            yield
        finally:
            self.close()
            self._opened = before

    def close(self) -> None:
        """Close the App's connections, if it has opened any; the next use opens them again."""
        if self._opened is not None:
            self._opened.close()

    def client(self) -> Client:
        """What looks, waits and controls on behalf of this App's jobs.

        Raises `InHandler` in a handler: a run that waited for another would keep its slot from it.
        """
        if current_port() is not None:
            raise InHandler("A handler may not wait for a job, look at one or cancel it.")
        return self._client()

    def _client(self) -> Client:
        from testigo.client import Client

        with self._opening:
            if self._opened is None:
                self._opened = Client(self.name, *self.place())
            return self._opened

    def __repr__(self) -> str:
        return f"App({self.name!r})"


def _ids(jobs: Sequence[NewJob], rows: Iterable[tuple[JobId, How]]) -> list[JobId]:
    ids = []
    for job, (job_id, how) in zip(jobs, rows, strict=True):
        if how is How.CONFLICT:
            told = f"The key {job.key!r} of {job.client!r} already names a {job.kind!r} job with other content."
            raise KeyConflict(told, field="key", job=job_id)
        ids.append(job_id)
    return ids


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
