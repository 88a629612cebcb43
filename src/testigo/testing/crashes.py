"""Runs that are lost at a chosen step, as if the process that ran the handler had died there.

The handler is left standing where it was: nothing after that step happens, no `except` and no `finally`
of it, and no result. Its job counts a loss, against its crash limit, and runs again from its last checkpoint.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from testigo.app import Bound
from testigo.authority.claim import Lease
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.rules.outcomes import Lose
from testigo.store.database import Database
from testigo.worker.direct import DirectPort
from testigo.worker.execute import run_async, run_sync
from testigo.worker.handlers import HandlerSpec
from testigo.worker.inline import InlineWorker
from testigo.worker.protocol import Run
from testigo.worker.term import Term
from testigo.worker.wire import End

__all__ = ["CrashingWorker", "crash"]


@dataclass
class _Plan:
    """Where the next runs of a kind are lost, and how many of them are still to be."""

    before_save: int | None
    after_save: int | None
    before_end: bool
    times: int


_PLANS: dict[str, _Plan] = {}
_LOST = End(Lose("CRASHED", "The test crashed this run."))


@contextmanager
def crash(
    handler: Bound[..., Any],
    *,
    before_save: int | None = None,
    after_save: int | None = None,
    before_end: bool = False,
    times: int = 1,
) -> Iterator[None]:
    """Lose the next runs of a handler that `run_until_idle` begins, as many as `times`, each at the same step.

    The step is one of: before or after the n-th `ctx.save` of the run, counted from 1, or `before_end`, when
    the handler is through and its end not yet reported. Raises `Invalid` for none or several, and
    `AssertionError` when not all of these runs came to that step.
    """
    named = [each for each in (before_save, after_save) if each is not None]
    if len(named) + before_end != 1:
        raise Invalid("One step is needed.", field="crash", limit="before_save, after_save or before_end")
    for number in (*named, times):
        fields.whole(number, field="crash", low=1, high=fields.INTEGER_MAX)
    if handler.kind in _PLANS:
        raise Invalid(f"A crash of {handler.kind!r} is planned already.", field="crash")
    plan = _PLANS[handler.kind] = _Plan(before_save, after_save, before_end, times)
    try:
        yield
    finally:
        del _PLANS[handler.kind]
    if plan.times:
        raise AssertionError(f"{plan.times} of {times} runs of {handler.kind!r} did not come to where they crash.")


class CrashingWorker(InlineWorker):
    """A worker in this process whose runs are lost where a test planned it."""

    def port_of(self, term: Term, lease: Lease) -> DirectPort:
        """A port at which the run ends, if one is planned."""
        plan = _PLANS.get(lease.kind)
        if plan is None or not plan.times:
            return super().port_of(term, lease)
        return _MortalPort(self.database, term, lease, plan)

    def end_of(self, spec: HandlerSpec, run: Run, port: DirectPort) -> End:
        """The end of a run, or its loss."""
        return port.end_of(spec, run) if isinstance(port, _MortalPort) else super().end_of(spec, run, port)


class _MortalPort(DirectPort):
    """The port of a run that may be lost: its handler has a thread of its own, in which it can be left."""

    def __init__(self, db: Database, term: Term, lease: Lease, plan: _Plan) -> None:
        super().__init__(db, term, lease)
        self._plan = plan
        self._ends: SimpleQueue[End] = SimpleQueue()

    def end_of(self, spec: HandlerSpec, run: Run) -> End:
        """Run the handler until it has ended or is lost."""

        def work() -> None:
            end = asyncio.run(run_async(spec, run, self)) if spec.is_async else run_sync(spec, run, self)
            if self._plan.before_end:
                self._die()
            self._ends.put(end)

        threading.Thread(target=work, name=f"testigo-crash-{run.job_id}", daemon=True).start()
        return self._ends.get()

    def save(self, number: int, checkpoint: Document) -> Future[None]:
        """Save, unless the run is lost before; or after."""
        if self._plan.before_save == number:
            self._die()
        saved = super().save(number, checkpoint)
        if self._plan.after_save == number:
            self._die()
        return saved

    def _die(self) -> None:
        """Report the loss, and never return: whoever called this does nothing more."""
        self._plan.times -= 1
        self._ends.put(_LOST)
        threading.Event().wait()
