"""The port of one run in a runner: what the run asks of its keeper, and what its keeper told it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Protocol

from testigo.authority.actions import JobId, new_id
from testigo.authority.submissions import How, NewJob
from testigo.errors import LeaseLost
from testigo.rules.discreet import discreet
from testigo.rules.documents import Document
from testigo.settings import WORKER
from testigo.store.backend import Backend
from testigo.worker.wire import new_job_to_wire

__all__ = ["Line", "RunPort"]

Note = list[Any]


class Line(Protocol):
    """The runner's side of the conversation, as a run's port needs it. All of it may be used from any thread."""

    is_draining: bool

    def call(self, ticket: int, name: str, arguments: list[Any], read: Callable[[Any], Any]) -> Future[Any]:
        """Ask the keeper; the answer is what `read` makes of it, or the error that it sent."""

    def note(self, note: Note) -> None:
        """Tell the keeper, soon."""


class RunPort:
    """The port of one run. `task` is its task where its handler is a coroutine, `owner` what a publisher is told."""

    __slots__ = (
        "_dropped",
        "_line",
        "_log_bytes",
        "_log_lines",
        "began",
        "has_ended",
        "is_threaded",
        "owner",
        "started_at",
        "task",
        "ticket",
        "why_stopped",
    )

    def __init__(self, line: Line, ticket: int, *, owner: tuple[str, str] | None = None) -> None:
        self._line = line
        self._log_lines = 0
        self._log_bytes = 0
        self._dropped = 0
        self.ticket = ticket
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self.why_stopped: str | None = None
        self.started_at = 0.0
        self.began = 0.0
        self.has_ended = False
        self.is_threaded = False

    @property
    def is_draining(self) -> bool:
        """Whether the runner was told that runs should come to an end."""
        return self._line.is_draining

    def begin(self) -> None:
        """Stamp the start of the run."""
        self.started_at = time.time()
        self.began = time.monotonic()

    def end(self) -> float:
        """Close the port; returns how long the run took, in seconds."""
        if self._dropped:
            self._line.note(self._logged("warning", f"{self._dropped} more lines were not kept."))
        self.has_ended = True
        return time.monotonic() - self.began

    def stop(self, why: str) -> None:
        """Tell the run to stop. A coroutine is cancelled where it waits; a thread finds out when it looks."""
        self.why_stopped = why
        if self.task is not None and self.began:
            self.task.cancel()

    def save(self, number: int, checkpoint: Document) -> Future[None]:
        """Keep a checkpoint, the `number`-th of this run."""
        return self._call("save", [number, checkpoint], _saved)

    def submit(self, jobs: Sequence[NewJob]) -> Future[list[tuple[JobId, How]]]:
        """Submit jobs at once, by an action that is made here and keeps its name however often it is sent."""
        wanted = [new_job_to_wire(job) for job in jobs]
        return self._call("submit", [new_id(), datetime.now(UTC).isoformat(), wanted], _submitted)

    def connected(self, backends: Sequence[Backend]) -> Future[None]:
        """Have the session tell of these, the server's processes behind the connections of a publisher."""
        return self._call("connected", [[(each.pid, each.started.isoformat()) for each in backends]], _recorded)

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Tell how far the run is."""
        if not self.has_ended:
            self._line.note([self.ticket, "progress", done, total, note])

    def log(self, level: str, text: object) -> None:
        """Keep a line, as long as the run's share of lines and bytes lasts; count those beyond it."""
        if self.has_ended:
            return
        line = discreet(text, bytes_max=WORKER.log_line_bytes_max)
        size = len(line.encode())
        if self._log_lines == WORKER.log_lines_max or self._log_bytes + size > WORKER.log_bytes_max:
            self._dropped += 1
            return
        self._log_lines += 1
        self._log_bytes += size
        self._line.note(self._logged(level, line))

    def _logged(self, level: str, line: str) -> Note:
        return [self.ticket, "log", time.time(), level, line]

    def _call(self, name: str, arguments: list[Any], read: Callable[[Any], Any]) -> Future[Any]:
        if self.has_ended:
            raise LeaseLost("The run has ended; what it left behind cannot speak for it.")
        return self._line.call(self.ticket, name, arguments, read)


def _saved(_: object) -> None:
    """A checkpoint that a later one superseded is as good as kept."""


def _recorded(_: object) -> None:
    """The session tells of them."""


def _submitted(rows: Any) -> list[tuple[JobId, How]]:
    return [(JobId(job_id), How(how)) for job_id, how in rows]
