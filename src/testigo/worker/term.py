"""A session as its keeper knows it: the numbers of its commands, its leases, and when it must stop.

Several threads use one `Term`; each method is one step under its lock, a batch at a time
(spec P-04, P-16, P-17, P-19).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from testigo.authority.actions import JobId, SessionAction
from testigo.authority.claim import Lease
from testigo.authority.sessions import Session
from testigo.authority.start import Held
from testigo.rules.leases import Holder
from testigo.settings import SESSIONS

__all__ = ["Term", "clock"]

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that counts suspend: on Linux that of the boot; the monotonic one does it elsewhere (spec P-19)."""


def clock() -> float:
    """Seconds on the clock by which a holder stops itself."""
    return time.clock_gettime(_CLOCK)


class Term:
    """One session, from its opening until the answer to its last command."""

    def __init__(self, session: Session, *, opened_at: float) -> None:
        """A session whose opening was sent at `opened_at`, on `clock`."""
        self.session = session
        self.over: str | None = None
        """The state that ended it ("dead", "replaced", …), or None while it lives as far as is known."""
        self._holder = Holder(SESSIONS.stop_after_terms * session.term_seconds, opened_at=opened_at)
        self._lock = threading.Lock()
        self._n = 0
        self._open: set[int] = set()
        self._granted = 0
        self._listed: dict[int, Lease] = {}

    @property
    def stop_at(self) -> float:
        """When the holder must stop, on `clock`, unless a renewal is answered before."""
        return self._holder.stop_at

    @property
    def beat_age_seconds(self) -> float:
        """How long ago the last good renewal was sent."""
        return clock() - self._holder.stop_at + SESSIONS.stop_after_terms * self.session.term_seconds

    def action(self) -> SessionAction:
        """The session's next command; it counts as open until `answered`."""
        with self._lock:
            self._n += 1
            self._open.add(self._n)
            return SessionAction(self.session.id, self.session.agent, self._n)

    def answered(self, action: SessionAction) -> None:
        """Notes that the answer to a command, its deferred rows included, is known and will not be asked for again."""
        with self._lock:
            self._open.discard(action.n)

    def granted(self, action: SessionAction, tickets: Sequence[int], leases: Sequence[Lease]) -> None:
        """Lists what a claim took, and moves the watermark over it: its answer is known (spec P-17)."""
        with self._lock:
            self._open.discard(action.n)
            self._granted = action.n
            self._listed.update(zip(tickets, leases, strict=True))

    def settled(self, tickets: Iterable[int]) -> None:
        """Lists these runs' leases no more: the answer to their settle is known."""
        with self._lock:
            for ticket in tickets:
                self._listed.pop(ticket, None)

    def kept(self) -> tuple[int, list[JobId]]:
        """What `take_back` leaves alone: the watermark, and the jobs that are listed at this same moment."""
        with self._lock:
            return self._granted, [lease.job_id for lease in self._listed.values()]

    def next_beat(self) -> tuple[int, list[Held], int]:
        """Begins a renewal: its beat, the leases that it names, and the n below which no receipt will be asked for.

        It counts from now, before its first send (spec P-19).
        """
        with self._lock:
            leases = list(self._listed.values())
            low_water = min(self._open, default=self._n + 1)
            beat = self._holder.beat + 1
            self._holder.sent(beat, clock())
        return beat, [Held(lease.job_id, lease.lease_id, lease.epoch) for lease in leases], low_water

    def beaten(self, beat: int) -> None:
        """Notes that the authority accepted a beat."""
        with self._lock:
            self._holder.answered(beat)
