"""The settler: reports how runs ended, whatever is ready in one statement (spec P-09, P-17).

What may succeed on the fast path goes through `settle`; all else, and what that defers, through
`settle_deferred` in a second thread, so that a wait for one job's lock keeps nobody else's end. A
lease stays listed until its answer is known. Where the session is over, a result is kept as a late one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from testigo.authority.actions import SessionAction
from testigo.authority.deferred import settle_deferred
from testigo.authority.settle import Settlement, settle
from testigo.errors import Error, ReceiptExpired, SessionReplaced
from testigo.rules.outcomes import Degrade, Fail, Succeed, is_result
from testigo.store.database import Database
from testigo.store.failures import reason_of
from testigo.worker.asking import Asker, Grumbler
from testigo.worker.runs import Run
from testigo.worker.term import Term

__all__ = ["Counted", "Settler"]

_log = logging.getLogger("testigo.worker")

ROWS_MAX = 400
"""Rows of one statement: beyond it nothing is won, and everybody waits for the stream's head."""
BYTES_MAX = 8 * 1024 * 1024
"""Outputs of one statement together, in characters."""
_MAY_BE_FAST = (Succeed, Degrade)
GATHER_SECONDS = 0.002
"""How long a busy settler lets ends gather."""
BUSY_SECONDS = 0.02
"""A settler that sent several ends so shortly before is busy; one whose ends come one by one has none to wait for."""


class Counted(Protocol):
    """What a settler tells its keeper, from its own threads; nothing of it waits."""

    def settled(self, runs: Sequence[Run], *, seconds: float) -> None:
        """The answer to the settle of these runs is known."""

    def fatal(self, error: BaseException) -> None:
        """A thread came to an end."""


class _Deferred(NamedTuple):
    """Runs of one batch that go through `settle_deferred`, each by its place in it."""

    term: Term
    action: SessionAction
    rows: list[tuple[int, Run]]


class Settler:
    """Two threads that report ends."""

    def __init__(self, db: Database, told: Counted, *, look: Callable[[], object], leaving: threading.Event) -> None:
        """`look` is called when a sweep may find something at once: a child to admit, a short wait for a retry."""
        self._fast = Asker(db, leaving)
        self._slow = Asker(db, leaving)
        self._told = told
        self._look = look
        self._leaving = leaving
        self._grumbler = Grumbler()
        self._changed = threading.Condition()
        self._is_deferred = threading.Condition()
        self._ended: deque[Run] = deque()
        self._deferred: deque[_Deferred] = deque()
        self._unanswered = 0
        self._busy_until = 0.0
        self._threads = [
            threading.Thread(target=self._guard, args=(each,), name=name, daemon=True)
            for name, each in (("testigo-settler", self._settle_all), ("testigo-deferred", self._settle_deferred_all))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    @property
    def unanswered(self) -> int:
        """How many runs were put here whose answer is not known yet."""
        return self._unanswered

    def put(self, runs: Sequence[Run]) -> None:
        """Report the ends of these runs."""
        with self._changed:
            self._ended.extend(runs)
            self._unanswered += len(runs)
            self._changed.notify()

    def _guard(self, loop: object) -> None:
        try:
            loop()  # type: ignore[operator]
        except BaseException as error:
            if not self._leaving.is_set():
                self._told.fatal(error)

    def _settle_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended)
                if time.monotonic() < self._busy_until:
                    self._changed.wait_for(lambda: len(self._ended) >= ROWS_MAX, GATHER_SECONDS)
                term, fast, slow = self._next_batch()
            self._settle(term, fast, slow)
            self._busy_until = time.monotonic() + BUSY_SECONDS if len(fast) + len(slow) > 1 else 0.0

    def _next_batch(self) -> tuple[Term, list[Run], list[Run]]:
        """As many as one statement takes, all of one term: what may be fast, and what cannot."""
        fast: list[Run] = []
        slow: list[Run] = []
        ended = self._ended
        term = ended[0].term
        size = 0
        while ended and len(fast) < ROWS_MAX and len(slow) < ROWS_MAX and size < BYTES_MAX and ended[0].term is term:
            run = ended.popleft()
            outcome = _end(run).outcome
            if isinstance(outcome, _MAY_BE_FAST) and not _end(run).children:
                fast.append(run)
                size += len(outcome.output)
            else:
                slow.append(run)
        return term, fast, slow

    def _settle(self, term: Term, fast: list[Run], slow: list[Run]) -> None:
        if fast:
            self._settle_fast(term, fast)
        if slow:
            self._defer(_Deferred(term, term.action(), list(enumerate(slow))))

    def _settle_fast(self, term: Term, runs: list[Run]) -> None:
        action = term.action()
        began_at = time.monotonic()
        try:
            receipt = self._fast.ask(settle, [_end(run) for run in runs], action=action)
        except Exception as error:
            if not isinstance(error, SessionReplaced | ReceiptExpired):
                self._grumbler.say("a batch of ends is reported one by one: %s", _reason(error))
            self._defer(_Deferred(term, action, list(enumerate(runs))))
            return
        if not receipt.deferred:
            term.answered(action)
            self._done(term, runs, began_at)
            return
        self._defer(_Deferred(term, action, [(place, runs[place]) for place in receipt.deferred]))
        self._done(term, [runs[place] for place in receipt.accepted], began_at)

    def _defer(self, rows: _Deferred) -> None:
        with self._is_deferred:
            self._deferred.append(rows)
            self._is_deferred.notify()

    def _settle_deferred_all(self) -> None:
        while True:
            with self._is_deferred:
                self._is_deferred.wait_for(lambda: self._deferred)
                deferred = self._deferred.popleft()
            self._settle_deferred(deferred)

    def _settle_deferred(self, deferred: _Deferred) -> None:
        term, action, rows = deferred
        rows = self._without_what_nobody_keeps(term, rows)
        if rows:
            self._report(term, action, rows)
        # Not before the last row's answer: what is below the low-water mark is not executed any more (spec P-04).
        term.answered(action)

    def _report(self, term: Term, action: SessionAction, rows: list[tuple[int, Run]]) -> None:
        began_at = time.monotonic()
        try:
            self._slow.ask(settle_deferred, [(place, _end(run)) for place, run in rows], action=action)
        except Exception as error:
            self._refused(term, action, rows, error)
            return
        self._done(term, [run for _, run in rows], began_at)
        if any(isinstance(_end(run).outcome, Fail) or _end(run).children for _, run in rows):
            self._look()

    def _without_what_nobody_keeps(self, term: Term, rows: list[tuple[int, Run]]) -> list[tuple[int, Run]]:
        """Of a session that is over, only results are evidence: nothing else is worth a command."""
        if term.over is None:
            return rows
        kept = [(place, run) for place, run in rows if is_result(_end(run).outcome)]
        gone = {run.ticket for _, run in rows} - {run.ticket for _, run in kept}
        self._done(term, [run for _, run in rows if run.ticket in gone], time.monotonic())
        return kept

    def _refused(self, term: Term, action: SessionAction, rows: list[tuple[int, Run]], error: Exception) -> None:
        """One row that is refused takes no other with it: it becomes a failure of that run alone."""
        if self._leaving.is_set():
            return
        if isinstance(error, ReceiptExpired):
            self._done(term, [run for _, run in rows], time.monotonic())
            return
        if len(rows) > 1:
            for row in rows:
                self._report(term, action, [row])
            return
        ((_, run),) = rows
        end = _end(run)
        if isinstance(end.outcome, Fail) and not end.children:
            # Not even a failure is taken: the reaper has the last word on this run.
            self._grumbler.say("the end of job %s is refused: %s", run.lease.job_id, _reason(error))
            self._done(term, [run], time.monotonic())
            return
        code = error.code if isinstance(error, Error) else type(error).__name__
        run.end = Settlement(end.lease, Fail(code, _reason(error)))
        self._defer(_Deferred(term, term.action(), [(0, run)]))

    def _done(self, term: Term, runs: Iterable[Run], began_at: float) -> None:
        answered = list(runs)
        if not answered:
            return
        term.settled([run.ticket for run in answered])
        with self._changed:
            self._unanswered -= len(answered)
        self._told.settled(answered, seconds=time.monotonic() - began_at)


def _end(run: Run) -> Settlement:
    assert run.end is not None
    return run.end


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, Error) else reason_of(error)
