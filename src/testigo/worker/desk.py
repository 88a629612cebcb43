"""The desk: answers what handlers ask while they run, and files what their keeper tells of them.

A few threads, each with one command at a time; what waits for one of them keeps no beat, no claim
and no end.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any

from testigo.authority.actions import Action, JobId
from testigo.authority.save import save
from testigo.authority.start import Held
from testigo.authority.submit import submit_many
from testigo.errors import Error, Invalid, LeaseLost, SessionReplaced
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.documents import parse
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.store.database import Database
from testigo.worker.asking import Asker
from testigo.worker.runs import Run
from testigo.worker.wire import error_to_wire, new_job_from_wire

__all__ = ["Desk", "Task", "answer_call"]

_log = logging.getLogger("testigo.worker")

Task = Callable[[Asker], object]
"""A command, or several, with whoever sends them."""


class Desk:
    """Threads that send commands for the main thread.

    Whoever asks much at once waits for nobody but itself: those who wait take turns, a task each.
    """

    def __init__(self, db: Database, threads: int, *, leaving: threading.Event) -> None:
        self._asker = Asker(db, leaving)
        self._changed = threading.Condition()
        self._lines: dict[Hashable, deque[Task]] = {}
        """What waits, by who wants it, in the order of their turns."""
        self._threads = [
            threading.Thread(target=self._work, name=f"testigo-desk-{at}", daemon=True) for at in range(threads)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def put(self, task: Task, *, of: Hashable = None) -> None:
        """Have a thread do this for a run, by its ticket, or for the keeper; what it raises is logged."""
        with self._changed:
            self._lines.setdefault(of, deque()).append(task)
            self._changed.notify()

    def _next(self) -> Task:
        with self._changed:
            self._changed.wait_for(lambda: self._lines)
            of = next(iter(self._lines))
            line = self._lines.pop(of)
            task = line.popleft()
            if line:
                self._lines[of] = line
            return task

    def _work(self) -> None:
        while True:
            task = self._next()
            try:
                task(self._asker)
            except Exception:  # the next one may be better
                _log.exception("a task of the desk failed")


def answer_call(asker: Asker, run: Run, what: str, arguments: object) -> tuple[object, list[Any] | None]:
    """The value of a handler's call, or the error that refuses it, as they travel."""
    try:
        match what, arguments:
            case "save", [number, checkpoint]:
                return _save(asker, run, number, checkpoint), None
            case "submit", [str(action_id), str(created_at), list(jobs)]:
                return _submit(asker, run, action_id, created_at, jobs), None
        raise Invalid(f"There is no such call: {tidy(what, bytes_max=64)!r}.", field="call")
    except Error as error:
        return None, error_to_wire(error)
    except Exception as error:  # whatever a handler sent, its keeper goes on
        return None, [Error.code, discreet(error, bytes_max=LIMITS.name_chars_max), None, Error.remedy]


def _save(asker: Asker, run: Run, number: Any, checkpoint: Any) -> dict[str, object]:
    document = parse(checkpoint, field="checkpoint")
    lease = run.lease
    action = run.term.action()
    try:
        held = Held(lease.job_id, lease.lease_id, lease.epoch)
        saved = asker.ask(save, held, document, number=number, action=action)
    except SessionReplaced as error:
        raise LeaseLost("The session of this run is over; the checkpoint was not saved.") from error
    finally:
        run.term.answered(action)
    # Only the fast path's guess at the settle: an older one costs time and nothing else (spec P-15).
    run.lease = run.lease._replace(revision=max(run.lease.revision, saved.revision))
    return {"revision": saved.revision, "superseded": saved.superseded}


def _submit(asker: Asker, run: Run, action_id: str, created_at: str, jobs: list[Any]) -> list[tuple[JobId, str]]:
    try:
        made_at = fields.moment(datetime.fromisoformat(created_at), field="created_at")
    except ValueError:
        raise Invalid("A time is needed, as ISO 8601 text.", field="created_at") from None
    action = Action(run.term.session.agent, action_id, made_at)
    receipt = asker.ask(submit_many, [new_job_from_wire(job) for job in jobs], action=action)
    return [(row.job_id, str(row.how)) for row in receipt.jobs]
