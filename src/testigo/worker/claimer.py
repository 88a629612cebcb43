"""The claimer: takes as many jobs as there are free slots, as soon as there are both (spec P-13, P-14, P-17).

While claims come back full, the next follows as soon as slots are free, from where the last one
ended. Otherwise it sleeps until a wake-up or, at the latest, the next poll. A claim whose answer is
not known is asked again, with the same action, until it is.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from testigo.authority.actions import new_id
from testigo.authority.claim import FROM_THE_FRONT, Claimed, Hint, QueueClaim, claim
from testigo.authority.expire import take_back
from testigo.authority.retire import retire
from testigo.authority.sessions import drain_session
from testigo.errors import NotFound, ReceiptExpired, SessionReplaced
from testigo.settings import STORE
from testigo.store.database import Database
from testigo.worker.asking import Asker, Grumbler
from testigo.worker.runs import Run
from testigo.worker.term import Term

__all__ = ["Claimer", "Taker", "Walk"]

_log = logging.getLogger("testigo.worker")

JOBS_MAX = 200
"""Jobs of one claim: beyond it, ordinary documents do not fit beside their rows and take a second statement."""
GATHER_SECONDS = 0.002
"""How long a busy claimer lets free slots gather."""
REWALK_SECONDS = 1.0
"""A queue is walked from its front at least so often, unless that takes long (spec P-14)."""
REWALK_COSTS = 10
"""Walks from the front take at most this part of the time: one in ten."""


class Taker(Protocol):
    """What a claimer tells its keeper, from its own thread; nothing of it waits."""

    def taken(self, runs: Sequence[Run], *, seconds: float) -> None:
        """A claim took these, in their order."""

    def drained(self) -> None:
        """The last claim's answer was handed over, and none will follow."""

    def fatal(self, error: BaseException) -> None:
        """The thread cannot go on."""


@dataclass(slots=True)
class Walk:
    """Where the claims of one need look: its kinds, and how far each queue was walked.

    What is paused, unroutable or dead at the front of a queue is passed over by its hint, and looked
    at again when the hint drops: after a short claim, on a wake-up for the queue, and every second.
    """

    number: int
    kinds: tuple[str, ...] = ()
    free: int = 0
    """Slots as the main thread last counted them."""
    underway: int = 0
    """Runs that were claimed since, of which it does not know yet."""
    due_at: float = 0.0
    woken_at: float = 0.0
    was_full: bool = False
    hints: dict[str, Hint] = field(default_factory=dict)
    front_at: dict[str, float] = field(default_factory=dict)
    """When the walk of a queue last began at its front."""
    rewalk_seconds: float = REWALK_SECONDS

    @property
    def slots(self) -> int:
        """How many jobs the next claim may take."""
        return min(self.free - self.underway, JOBS_MAX) if self.kinds else 0

    def wake(self, queue: str, now: float) -> None:
        """There may be something new in a queue."""
        self.due_at = min(self.due_at, now)
        self.woken_at = now
        if not self.was_full or now - self.front_at.get(queue, 0.0) >= REWALK_SECONDS:
            self.hints.pop(queue, None)

    def looks(self, queues: Iterable[str], slots: int, now: float) -> list[QueueClaim]:
        """Where the next claim looks."""
        for queue in [queue for queue in self.hints if now - self.front_at.get(queue, 0.0) >= self.rewalk_seconds]:
            del self.hints[queue]
        return [QueueClaim(queue, slots, self.hints.get(queue, FROM_THE_FRONT)) for queue in queues]

    def took(self, claimed: Claimed, asked: Sequence[QueueClaim], slots: int, began_at: float, now: float) -> None:
        """Takes in the answer: a full claim is followed at once, from where it ended; a short one from the front."""
        fronts = [each.queue for each in asked if each.hint is FROM_THE_FRONT]
        self.front_at.update(dict.fromkeys(fronts, began_at))
        if fronts:
            self.rewalk_seconds = max(REWALK_SECONDS, REWALK_COSTS * (now - began_at))
        self.was_full = len(claimed.leases) + len(claimed.unfit) >= slots
        if self.was_full:
            self.hints.update(claimed.hints)
            self.due_at = now
        else:
            self.hints.clear()
            # What woke this walk meanwhile may have come after the claim had looked.
            again = len(fronts) < len(asked) or claimed.unfit or self.woken_at >= began_at
            self.due_at = now if again else now + STORE.poll_seconds


class Claimer:
    """One thread that claims for the term that it is given."""

    def __init__(
        self, db: Database, taker: Taker, *, leaving: threading.Event, queues: Sequence[str], slots: int
    ) -> None:
        """`slots` is the number of all slots of the worker: a busy claimer waits until a fair part of them is free."""
        self._db = db
        self._asker = Asker(db, leaving)
        self._grumbler = Grumbler()
        self._taker = taker
        self._leaving = leaving
        self._queues = tuple(queues)
        self._enough = max(1, min(slots // 2, JOBS_MAX))
        self._tickets = itertools.count(1)
        self._changed = threading.Condition()
        self._walks = (Walk(0), Walk(1), Walk(2))
        self._term: Term | None = None
        self._draining = False
        self._tidy_at = 0.0
        self._thread = threading.Thread(target=self._run, name="testigo-claimer", daemon=True)

    def start(self) -> None:
        """Begin, once there is a term and there are slots."""
        self._thread.start()

    def serve(self, *sorts: Iterable[str]) -> None:
        """The kinds to claim: those that share a runner, those that need one of their own, those of the publisher."""
        with self._changed:
            for walk, kinds in zip(self._walks, map(tuple, sorts), strict=False):
                if kinds != walk.kinds:
                    walk.kinds, walk.due_at = kinds, 0.0
                    walk.hints.clear()
            self._changed.notify()

    def hold(self, term: Term | None) -> None:
        """Claim for this term from now on; for none while it is None."""
        with self._changed:
            self._term = term
            for walk in self._walks:
                walk.due_at = 0.0
                walk.hints.clear()
            self._changed.notify()

    def offer(self, *slots: int, received: Sequence[int]) -> None:
        """So many slots are free, and so many runs of each claim have reached the keeper since it last said so."""
        with self._changed:
            for walk, free, known in zip(self._walks, slots, received, strict=False):
                walk.free = free
                walk.underway -= known
            if any(walk.slots > 0 for walk in self._walks):
                self._changed.notify()

    def wake(self, queues: Iterable[str]) -> None:
        """There may be something new in these queues; from any thread."""
        now = time.monotonic()
        with self._changed:
            for walk in self._walks:
                for queue in queues:
                    walk.wake(queue, now)
            self._changed.notify()

    def drain(self) -> None:
        """Claim nothing more, say so to the authority, and come to an end."""
        with self._changed:
            self._draining = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            with ExitStack() as hearing:
                for queue in self._queues:
                    hearing.enter_context(self._db.listener.subscribed(queue, partial(self.wake, (queue,))))
                for walk, term, slots in self._turns():
                    self._claim(walk, term, slots)
            self._drain()
            self._taker.drained()
        except BaseException as error:
            if not self._leaving.is_set():
                self._taker.fatal(error)

    def _turns(self) -> Iterator[tuple[Walk, Term, int]]:
        """What to claim next and for whom, each when its time has come; ends with the drain."""
        while True:
            with self._changed:
                walk = self._await_turn()
                if walk is None:
                    return
                if walk.was_full:
                    self._gather(walk)
                term, slots = self._term, walk.slots
            if term is not None and slots > 0:
                yield walk, term, slots

    def _gather(self, walk: Walk) -> None:
        """Small claims cost the server as much as large ones: while there is work, let slots become free."""
        self._changed.wait_for(lambda: self._draining or walk.slots >= self._enough, GATHER_SECONDS)

    def _await_turn(self) -> Walk | None:
        while not self._draining:
            now = time.monotonic()
            able = [walk for walk in self._walks if walk.slots > 0] if self._term else []
            first = min(able, key=lambda walk: walk.due_at, default=None)
            if first is not None and first.due_at <= now:
                return first
            self._changed.wait(None if first is None else first.due_at - now)
        return None

    def _claim(self, walk: Walk, term: Term, slots: int) -> None:
        action = term.action()
        began_at = time.monotonic()
        looks = walk.looks(self._queues, slots, began_at)
        try:
            claimed = self._asker.ask(claim, looks, walk.kinds, slots=slots, lease_id=new_id(), action=action)
        except (SessionReplaced, ReceiptExpired):  # the beater hears of it, and sees to another term
            with self._changed:
                walk.due_at = time.monotonic() + STORE.poll_seconds
            return
        now = time.monotonic()
        tickets = list(itertools.islice(self._tickets, len(claimed.leases)))
        term.granted(action, tickets, claimed.leases)
        pairs = zip(tickets, claimed.leases, strict=True)
        runs = [Run(ticket, lease, term, walk.number) for ticket, lease in pairs]
        with self._changed:
            walk.took(claimed, looks, slots, began_at, now)
            walk.underway += len(runs)
        if runs:
            self._taker.taken(runs, seconds=now - began_at)
        self._tidy(term, claimed, now)

    def _tidy(self, term: Term, claimed: Claimed, now: float) -> None:
        """End what must not be started any more; return what an earlier send of a claim took too late (spec P-17)."""
        if claimed.unfit:
            self._asker.ask(retire, claimed.unfit)
        if now >= self._tidy_at:
            self._tidy_at = now + term.session.term_seconds
            watermark, listed = term.kept()
            self._asker.ask(take_back, term.session.id, watermark=watermark, listed=listed)

    def _drain(self) -> None:
        if self._term is None:
            return
        try:
            self._asker.ask(drain_session, self._term.session.id)
        except NotFound as error:
            self._grumbler.say("the session is gone before it was drained: %s", error.message)
