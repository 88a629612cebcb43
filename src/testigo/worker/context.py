"""What a handler may ask of its run: `Context` in a thread, `AsyncContext` on the loop; one base, two colours.

Every wish goes through one `Port`: the runner's, over its socket, or that of a run in this process,
straight to a database. A handler holds neither.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from testigo.authority.actions import JobId
from testigo.authority.submissions import How, NewJob
from testigo.errors import Invalid
from testigo.rules.discreet import discreet
from testigo.rules.documents import Document
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.worker import values
from testigo.worker.protocol import Run

__all__ = ["LEVELS", "AsyncContext", "Context", "Port", "RunContext", "Submits", "current_port", "port_of_run"]

P = ParamSpec("P")
T = TypeVar("T")
J = TypeVar("J", covariant=True)

LEVELS = ("debug", "info", "warning", "error", "critical")
"""The levels of a job's log lines, from the least to the most urgent."""

AMOUNT_MAX = 2.0**53
NOTE_BYTES_MAX = 1024


class Port(Protocol):
    """The way from one run to whoever holds its lease; it may be used from any thread."""

    @property
    def why_stopped(self) -> str | None:
        """cancelled, timeout, lease_lost or drained, once the run was told to stop; None before."""

    @property
    def is_draining(self) -> bool:
        """Whether the worker is about to end, so that runs should come to an end."""

    def save(self, number: int, checkpoint: Document) -> Future[None]:
        """Keep a checkpoint, the `number`-th of this run; answered once it is durable, or with `LeaseLost`."""

    def submit(self, jobs: Sequence[NewJob]) -> Future[list[tuple[JobId, How]]]:
        """Submit jobs at once; answered, in their order, once they are committed."""

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Tell how far the run is; only the last word counts."""

    def log(self, level: str, text: object) -> None:
        """Keep a line of the run's log."""


class Submits(Protocol[P, J]):
    """A handler, or a handler with options, of which jobs can be made."""

    def new_job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """The job with these arguments, not submitted yet. Raises `Invalid` for arguments that do not fit."""

    def job(self, job_id: JobId) -> J:
        """What the submitter gets in hand."""


port_of_run: ContextVar[Port] = ContextVar("testigo_port_of_run")
"""The port of the run that this code is part of, in its tasks and, where context is copied, its threads."""


def current_port() -> Port | None:
    """The port of the run that this code is part of; None outside any run."""
    return port_of_run.get(None)


class RunContext:
    """What both colours share: what is known of the run, and what does not wait."""

    __slots__ = ("_began", "_children", "_numbers", "_port", "_run", "_saved")

    def __init__(self, run: Run, port: Port) -> None:
        self._run = run
        self._port = port
        self._began = time.monotonic()
        self._saved: str | None = run.checkpoint
        self._numbers = itertools.count(1)
        self._children: list[NewJob] = []

    @property
    def job_id(self) -> JobId:
        """The job's id, the same in all its runs."""
        return JobId(self._run.job_id)

    @property
    def kind(self) -> str:
        """The job's kind."""
        return self._run.kind

    @property
    def queue(self) -> str:
        """The queue that the job was claimed from."""
        return self._run.queue

    @property
    def epoch(self) -> int:
        """The number of this run, from 1; it only rises."""
        return self._run.epoch

    @property
    def failures(self) -> int:
        """How many earlier runs failed."""
        return self._run.failures

    @property
    def losses(self) -> int:
        """How many earlier runs were lost with the process that ran them."""
        return self._run.losses

    @property
    def finish_by(self) -> datetime | None:
        """The end of all tries, in UTC, or None."""
        text = self._run.finish_by
        return None if text is None else datetime.fromisoformat(text)

    @property
    def timeout_seconds(self) -> float:
        """The hard limit of this run, after which it is stopped, and then killed (spec P-22)."""
        return self._run.timeout_seconds

    @property
    def seconds_left(self) -> float:
        """What is left of `timeout_seconds`; 0 once it is over."""
        return max(0.0, self._run.timeout_seconds - (time.monotonic() - self._began))

    @property
    def why_stopped(self) -> str | None:
        """cancelled, timeout, lease_lost or drained, once this run was told to stop; None before."""
        return self._port.why_stopped

    @property
    def cancelled(self) -> bool:
        """Whether this run was told to stop, for whatever reason; what it still does is in vain."""
        return self._port.why_stopped is not None

    @property
    def should_stop(self) -> bool:
        """Whether the run had better come to an end: it was told to stop, or its worker is draining.

        While draining it may finish, save and raise `Yielded`, or be given back as it is.
        """
        return self._port.why_stopped is not None or self._port.is_draining

    @property
    def children(self) -> tuple[NewJob, ...]:
        """The jobs that `submit` was asked for so far, which are committed with the end of this run."""
        return tuple(self._children)

    def load(self, type_: type[T]) -> T | None:
        """The last checkpoint, of this run or an earlier one, as this type; None where there is none.

        Raises `PayloadInvalid` for one that is not of this type: it was saved by other code.
        """
        if self._saved is None:
            return None
        loaded: T = values.read(self._saved, type_)
        return loaded

    def _save(self, value: object) -> tuple[Document, Future[None]]:
        checkpoint = values.write(value, field="checkpoint")
        return checkpoint, self._port.save(next(self._numbers), checkpoint)

    def _progress(self, done: float, total: float | None, note: str) -> None:
        self._port.progress(
            _amount(done, "done"),
            None if total is None else _amount(total, "total"),
            discreet(note, bytes_max=NOTE_BYTES_MAX),
        )

    def _log(self, text: object, level: str) -> None:
        if level not in LEVELS:
            raise Invalid(f"{tidy(level, bytes_max=40)!r} is no level.", field="level", limit=", ".join(LEVELS))
        self._port.log(level, text)

    def _submit(self, handler: Submits[P, J], args: Any, kwargs: Any) -> J:
        child = handler.new_job(*args, **kwargs)
        if len(self._children) == LIMITS.batch_max:
            raise Invalid(
                "The run has no room for one more child.",
                field="children",
                limit=f"{LIMITS.batch_max} jobs",
                remedy="Submit the others with submit_many, or from one of the children.",
            )
        self._children.append(child)
        return handler.job(child.id)


class Context(RunContext):
    """The context of a handler that runs in a thread. It may be used from any thread of the handler."""

    __slots__ = ()

    def save(self, value: object) -> None:
        """Keep a checkpoint, from which the next run of this job begins; durable before this returns.

        Raises `LeaseLost` when the job is not this run's any more, `PayloadInvalid` and
        `PayloadTooLarge` for a value that cannot be kept (spec B-12, P-04).
        """
        checkpoint, saved = self._save(value)
        saved.result()
        self._saved = checkpoint

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tell how far the run is: `done` of `total`, in whatever unit. The last word of a moment is shown."""
        self._progress(done, total, note)

    def log(self, text: object, level: str = "info") -> None:
        """Keep a line of this run's log; what is beyond a run's share is counted, not kept."""
        self._log(text, level)

    def submit(self, handler: Submits[P, J], /, *args: P.args, **kwargs: P.kwargs) -> J:
        """Submit a job together with the success of this run: either both are committed, or neither.

        A run that does not succeed submits nothing; the next one asks again. Raises `Invalid` beyond 10,000.
        """
        return self._submit(handler, args, kwargs)


class AsyncContext(RunContext):
    """The context of a handler that is a coroutine on the runner's loop."""

    __slots__ = ()

    async def save(self, value: object) -> None:
        """Keep a checkpoint, from which the next run of this job begins; durable before this returns.

        Raises `LeaseLost` when the job is not this run's any more, `PayloadInvalid` and
        `PayloadTooLarge` for a value that cannot be kept (spec B-12, P-04).
        """
        checkpoint, saved = self._save(value)
        await answered(saved)
        self._saved = checkpoint

    async def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tell how far the run is: `done` of `total`, in whatever unit. The last word of a moment is shown."""
        self._progress(done, total, note)

    async def log(self, text: object, level: str = "info") -> None:
        """Keep a line of this run's log; what is beyond a run's share is counted, not kept."""
        self._log(text, level)

    async def submit(self, handler: Submits[P, J], /, *args: P.args, **kwargs: P.kwargs) -> J:
        """Submit a job together with the success of this run: either both are committed, or neither.

        A run that does not succeed submits nothing; the next one asks again. Raises `Invalid` beyond 10,000.
        """
        return self._submit(handler, args, kwargs)


def answered(future: Future[T]) -> Awaitable[T]:
    """The answer of a port, awaited on the running loop."""
    return asyncio.wrap_future(future)


def _amount(number: float, field: str) -> float:
    if not 0 <= number <= AMOUNT_MAX:
        raise Invalid("The number is out of range.", field=field, limit="0 to 2^53")
    return int(number) if isinstance(number, int) else float(number)
