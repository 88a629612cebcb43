"""What an App does with its database: submit, look how a job stands, wait for its end, cancel.

Both colours do the same. An asynchronous caller's commands are run by the threads of this client, as many
as it has connections, so that neither the caller's event loop nor its own threads wait for the database.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

from testigo.authority.actions import Action, JobId
from testigo.authority.cancel import How as CancelHow
from testigo.authority.cancel import cancel
from testigo.authority.read.ends import JobEnd, end
from testigo.authority.submissions import NewJob, SubmittedJob
from testigo.authority.submit import submit_many, submit_within
from testigo.configuration import Installation, installation
from testigo.errors import InHandler, NotEnded
from testigo.rules import fields
from testigo.settings import STORE
from testigo.store.connections import run_within, run_within_async
from testigo.store.database import Database
from testigo.store.urls import shown

__all__ = ["Client"]

R = TypeVar("R")

_log = logging.getLogger("testigo.client")


class Client:
    """An App's way to its installation; safe to share between threads. It connects when it first has to.

    A process that was forked off connects for itself.
    """

    def __init__(self, name: str, url: str | None, schema: str | None) -> None:
        self._name = name
        self._given = (url, schema)
        self._opening = threading.Lock()
        self._opened: _Opened | None = None

    @property
    def database(self) -> Database:
        """The App's installation, found as `configuration.installation` says, and told of once in the log.

        Raises `InHandler` in a runner, which has no credentials; and what `configuration` and `Database` raise.
        """
        if os.environ.get("TESTIGO_RUNNER") == "1":
            raise InHandler(
                f"The App {self._name!r} is not connected to its database in a runner.",
                remedy="Submit from the handler; in a thread of its own, run that in a contextvars.copy_context().",
            )
        return self._open().database

    @cached_property
    def place(self) -> Installation:
        """Where the installation is, and who said so."""
        return installation(*self._given)

    def submit(self, jobs: Sequence[NewJob], connection: object | None) -> Sequence[SubmittedJob]:
        """Submit a batch, in the caller's transaction if `connection` is given; what became of each row.

        Raises as `authority.submit.submit_many` and `store.connections.run_within` do.
        """
        action = Action(self._name)
        if connection is None:
            return self.database.run(submit_many, jobs, action=action).jobs
        return run_within(connection, submit_within, jobs, action=action, schema=self.place.schema).jobs

    async def submit_async(self, jobs: Sequence[NewJob], connection: object | None) -> Sequence[SubmittedJob]:
        """The same for an asynchronous caller, whose connection is asynchronous as well."""
        if connection is None:
            return await self.apart(partial(self.submit, jobs, None))
        action = Action(self._name)
        return (await run_within_async(connection, submit_within, jobs, action=action, schema=self.place.schema)).jobs

    def look(self, job_id: JobId) -> JobEnd:
        """How the job stands. Raises `NotFound`."""
        return self.database.run(end, job_id)

    def wait(self, job_id: JobId, timeout: float | None) -> JobEnd:
        """How the job ended, once it has. Raises `NotFound`, and `NotEnded` after `timeout` seconds."""
        for pause in _pauses(timeout):
            found = self.look(job_id)
            if found.ended:
                return found
            time.sleep(pause)
        raise _not_ended(job_id, timeout)

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobEnd:  # noqa: ASYNC109
        """The same for an asynchronous caller."""
        for pause in _pauses(timeout):
            found = await self.apart(partial(self.look, job_id))
            if found.ended:
                return found
            await asyncio.sleep(pause)
        raise _not_ended(job_id, timeout)

    def cancel(self, job_id: JobId, note: str) -> CancelHow:
        """Cancel the job, as its state allows. Raises `NotFound`."""
        return self.database.run(cancel, [job_id], note=note, action=Action(self._name)).jobs[0].how

    async def apart(self, work: Callable[[], R]) -> R:
        """Have work done by a thread of this client; a caller that is cancelled meanwhile leaves it to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._open().threads, work)

    def close(self) -> None:
        """Close every connection and end the threads; the next use opens them again."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None and opened.process == os.getpid():
            opened.threads.shutdown()
            opened.database.close()
        atexit.unregister(self.close)

    def _open(self) -> _Opened:
        with self._opening:
            if self._opened is None or self._opened.process != os.getpid():
                database = Database(self.place.url, schema=self.place.schema)
                threads = ThreadPoolExecutor(STORE.pool_size, thread_name_prefix="testigo-client")
                self._opened = _Opened(os.getpid(), database, threads)
                atexit.register(self.close)  # what was just submitted still wakes somebody
                where = shown(self.place.url)
                _log.info("%s uses %s, schema %s, by %s", self._name, where, self.place.schema, self.place.source)
            return self._opened


class _Opened(NamedTuple):
    """What a process opened; one that was forked off meanwhile may neither use nor close it."""

    process: int
    database: Database
    threads: ThreadPoolExecutor


def _pauses(timeout: float | None) -> Iterator[float]:
    """The seconds between one look and the next, longer and longer; the last look is at the timeout."""
    ends_at = None if timeout is None else time.monotonic() + fields.seconds(timeout, field="timeout")
    pause = STORE.look_first_seconds
    while ends_at is None or (left := ends_at - time.monotonic()) > 0:
        yield pause if ends_at is None else min(pause, left)
        pause = min(pause * STORE.look_growth, STORE.look_cap_seconds)
    yield 0.0


def _not_ended(job_id: JobId, timeout: float | None) -> NotEnded:
    return NotEnded(f"The job {job_id} has not ended in {timeout} seconds.", field="timeout", job=job_id)
