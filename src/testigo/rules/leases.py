"""Liveness from observation: the holder stops itself, the reaper watches, and no wall clock takes part.

`Holder` is the keeper's side: it must stop `stop_after` from before it first sent the last renewal
that succeeded. `Watch` is the reaper's side: it takes for dead what it has itself seen unchanged for
the whole term. Each counts seconds of its own monotonic clock, given as arguments;
`check_obligation` makes sure that the first is through before the second begins (spec P-16, P-18,
P-19, P-22, P-23).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from testigo.errors import Invalid
from testigo.settings import LIMITS, SESSIONS

__all__ = ["Holder", "Reading", "RunReading", "Watch", "check_obligation"]

CAPS_PER_TERM = 5
"""No interval between two reads counts for more than this part of the term (spec P-18)."""
READS_PER_TERM = 30
"""A reaper reads at least so often in a term (spec P-18)."""
READ_SECONDS_MIN = 0.001
"""A beat that is a rounding error short of its age is read again after this, not at once."""


def check_obligation(
    term_seconds: float,
    stop_after_terms: float = SESSIONS.stop_after_terms,
    drift: float = SESSIONS.clock_drift,
    kill_seconds: float = SESSIONS.kill_seconds,
) -> None:
    """Asserts at start-up that a holder is gone before any reaper may call it dead (spec P-19).

    The holder counts stop_after = `stop_after_terms` x term and needs `kill_seconds` more; between the
    two clocks lies at most `drift`, a share. Raises `Invalid` unless
    stop_after / (1 - drift) + kill_seconds <= term / (1 + drift), or for a term below the least one.
    """
    for field, value, low, high in (
        ("term_seconds", term_seconds, SESSIONS.term_seconds_min, LIMITS.seconds_max),
        ("stop_after_terms", stop_after_terms, 0.0, 1.0),
        ("drift", drift, 0.0, 0.5),
        ("kill_seconds", kill_seconds, 0.0, LIMITS.seconds_max),
    ):
        if not low <= value <= high:
            raise Invalid("the number is out of range", field=field, limit=f"{low:g} to {high:g}")
    gone_seconds = stop_after_terms * term_seconds / (1 - drift) + kill_seconds
    dead_seconds = term_seconds / (1 + drift)
    if gone_seconds > dead_seconds:
        raise Invalid(
            f"a holder may be {gone_seconds:.3f} s in stopping, but may be called dead after {dead_seconds:.3f} s",
            field="term_seconds",
            limit="stop_after / (1 - drift) + kill_seconds <= term / (1 + drift)",
            remedy="Choose a longer term, an earlier stop or a shorter kill time.",
        )


class Holder:
    """When a keeper must stop itself, from its own renewals (spec P-16, P-19).

    Renewals carry beats 1, 2, 3 …, one beat in flight at a time, each sent again until it is answered.
    The clock counts suspend. A claim is not a renewal, and a session's opening counts as beat 0.
    """

    __slots__ = ("_beat", "_counted_from", "_first_sent", "_stop_after_seconds")

    def __init__(self, stop_after_seconds: float, *, opened_at: float) -> None:
        """A session whose opening was first sent at `opened_at`."""
        self._stop_after_seconds = stop_after_seconds
        self._counted_from = opened_at
        self._beat = 0
        self._first_sent: float | None = None

    @property
    def beat(self) -> int:
        """The last beat that is known to have been accepted."""
        return self._beat

    @property
    def stop_at(self) -> float:
        """When the holder must stop, unless a renewal is answered before."""
        return self._counted_from + self._stop_after_seconds

    def must_stop(self, now: float) -> bool:
        """Whether that time has come."""
        return now >= self.stop_at

    def sent(self, beat: int, at: float) -> None:
        """Notes that a renewal is about to be sent; `at` is read before sending.

        Only the first send of a beat counts, for it may be the one that the authority took, and a
        reaper may have seen the beat ever since.
        """
        if beat != self._beat + 1:
            raise Invalid(f"beat {beat} does not follow beat {self._beat}", field="beat")
        if self._first_sent is None:
            self._first_sent = at

    def answered(self, beat: int) -> None:
        """Notes that the authority accepted a beat; an answer that comes a second time changes nothing."""
        if beat <= self._beat:
            return
        if self._first_sent is None or beat != self._beat + 1:
            raise Invalid(f"beat {beat} was never sent", field="beat")
        self._beat = beat
        self._counted_from, self._first_sent = self._first_sent, None


@dataclass(frozen=True, slots=True)
class Reading:
    """An open session as one read showed it."""

    session_id: str
    epoch: int
    beat: int
    term_seconds: float

    @property
    def of_age_seconds(self) -> float:
        """Unchanged for its whole term, it is dead."""
        return self.term_seconds


@dataclass(frozen=True, slots=True)
class RunReading:
    """A job under a hard limit as one read showed it: it ages like a beat, from the watcher's own first
    sight of this epoch (spec P-22)."""

    job_id: str
    epoch: int
    limit_seconds: float
    term_seconds: float
    """That of the session which holds the job."""

    @property
    def of_age_seconds(self) -> float:
        """Seen for its whole hard limit, it has run out of time."""
        return self.limit_seconds


class _Ageing(Hashable, Protocol):
    """What can be watched: two equal readings show that nothing has changed between them."""

    @property
    def term_seconds(self) -> float: ...

    @property
    def of_age_seconds(self) -> float: ...


Seen = TypeVar("Seen", bound=_Ageing)


class Watch(Generic[Seen]):
    """What one reaper has seen unchanged, and for how long (spec P-18, P-22, P-23).

    An age is the sum of the intervals between successive successful reads, each capped at a fifth of
    the term, so that time in which the reaper was suspended or cut off counts one cap at most. It
    begins after the answer of the first read that showed the reading. Whatever changes (a beat, an
    epoch, a term), vanishes, or comes after an error begins anew, and a new reaper knows nothing.

    Being of age proves nothing yet: the authority declares a session dead only if its epoch and beat
    are still the ones read.
    """

    __slots__ = ("_ages", "_answered_at", "_incarnation")

    def __init__(self) -> None:
        self._ages: dict[Seen, float] = {}
        self._answered_at = 0.0
        self._incarnation: str | None = None

    def observe(self, readings: Iterable[Seen], incarnation: str, *, answered_at: float) -> None:
        """Takes in one successful read; `answered_at` is stamped after its answer.

        `incarnation` is the database's, read with the readings: another one (a failover, a restore)
        forgets everything that was seen before.
        """
        if incarnation != self._incarnation:
            self.failed()
        interval = max(0.0, answered_at - self._answered_at)
        self._ages = {
            reading: self._ages[reading] + min(interval, reading.term_seconds / CAPS_PER_TERM)
            if reading in self._ages
            else 0.0
            for reading in readings
        }
        self._answered_at = answered_at
        self._incarnation = incarnation

    def failed(self) -> None:
        """Notes a read that failed or whose answer is not known: everything begins anew."""
        self._ages = {}
        self._incarnation = None

    def dead(self) -> list[Seen]:
        """What is of age as of the last read."""
        return [reading for reading, age in self._ages.items() if age >= reading.of_age_seconds]

    def next_read_seconds(self) -> float:
        """How long after the last answer to read again, at the latest.

        At least thirty times in the shortest term, the default one included since any session may open,
        and just when the next reading comes of age if it stays unchanged.
        """
        wait = SESSIONS.term_seconds / READS_PER_TERM
        for reading, age in self._ages.items():
            wait = min(wait, reading.term_seconds / READS_PER_TERM)
            if age < reading.of_age_seconds:
                wait = min(wait, reading.of_age_seconds - age)
        return max(wait, READ_SECONDS_MIN)
