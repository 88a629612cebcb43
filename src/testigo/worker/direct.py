"""The port of a run in the process that holds its lease: straight to the database."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import TypeVar

from testigo.authority.actions import Action, JobId
from testigo.authority.claim import Lease
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.save import save
from testigo.authority.start import Held
from testigo.authority.submissions import How, NewJob
from testigo.authority.submit import submit_many
from testigo.errors import LeaseLost, SessionReplaced
from testigo.rules.discreet import discreet
from testigo.rules.documents import Document
from testigo.settings import WORKER
from testigo.store.database import Database
from testigo.worker.term import Term

__all__ = ["DirectPort"]

T = TypeVar("T")


class DirectPort:
    """A run's way to its database: what a handler asks is done at once, by the thread that asks."""

    is_draining = False

    def __init__(self, db: Database, term: Term, lease: Lease) -> None:
        self.term = term
        self.lease = lease
        """With the revision that the last save made: the fast path's guess at the settle."""
        self.held = Held(lease.job_id, lease.lease_id, lease.epoch)
        self.why_stopped: str | None = None
        self.on_stop: Callable[[], object] | None = None
        """What interrupts the handler, where something can."""
        self._db = db
        self._told = itertools.count(1)

    def stop(self, why: str) -> None:
        """Tell the run to stop; the first reason counts."""
        if self.why_stopped is None:
            self.why_stopped = why
            if self.on_stop is not None:
                self.on_stop()

    def save(self, number: int, checkpoint: Document) -> Future[None]:
        """Keep a checkpoint; it is durable when this returns."""
        return _done(lambda: self._save(number, checkpoint))

    def submit(self, jobs: Sequence[NewJob]) -> Future[list[tuple[JobId, How]]]:
        """Submit jobs; they are committed when this returns."""
        action = Action(self.term.session.agent)
        return _done(lambda: [(row.job_id, row.how) for row in self._db.run(submit_many, jobs, action=action).jobs])

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Keep how far the run is."""
        told = Progress(self.held, next(self._told), datetime.now(UTC), done, total, note)
        self._db.run(report, self.term.session.id, [told])

    def log(self, level: str, text: object) -> None:
        """Keep a line of the run's log."""
        kept = discreet(text, bytes_max=WORKER.log_line_bytes_max)
        line = LogLine(self.held, next(self._told), datetime.now(UTC), level, kept)
        self._db.run(report, self.term.session.id, (), [line])

    def _save(self, number: int, checkpoint: Document) -> None:
        action = self.term.action()
        try:
            saved = self._db.run(save, self.held, checkpoint, number=number, action=action)
        except SessionReplaced as error:
            raise LeaseLost("The session of this run is over; the checkpoint was not saved.") from error
        finally:
            self.term.answered(action)
        self.lease = self.lease._replace(revision=max(self.lease.revision, saved.revision))


def _done(work: Callable[[], T]) -> Future[T]:
    """The future of what is done here and now."""
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future
