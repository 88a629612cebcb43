"""What an explanation is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from testigo.authority.actions import JobId
from testigo.rules.states import State

__all__ = ["Code", "Explanation", "Finding", "in_utc"]


class Code(StrEnum):
    """Where a job stands, and what it waits for; in the order in which a job meets them."""

    UNADMITTED = "unadmitted"
    """No stream has told of it yet; a worker or server admits it within a poll."""
    UNFIT = "unfit"
    """It must not be started any more, and is ended by the next claim or sweep that meets it."""
    BLOCKED = "blocked"
    """Something from outside is needed; `unblock` sends it back to work."""
    NOT_YET = "not_yet"
    """It waits for the time that was asked for."""
    RETRY = "retry"
    """It failed, and waits for its next try."""
    PARENT_FAILED = "parent_failed"
    """It waits for a parent that failed for good: for what a reprocess makes of it."""
    PARENTS = "parents"
    """It waits for parents that have not ended."""
    QUEUE_PAUSED = "queue_paused"
    KIND_PAUSED = "kind_paused"
    UNSERVED = "unserved"
    """No open session takes this kind from this queue."""
    BEHIND = "behind"
    """Others are claimed before it."""
    NEXT = "next"
    """Nothing is in its way: the next free slot takes it."""
    LEASED = "leased"
    RUNNING = "running"
    CANCELLING = "cancelling"
    """A cancel was requested, and its holder has not answered."""
    OWNER_GONE = "owner_gone"
    """Its holder's session is over: the next sweep takes it back."""
    SUCCEEDED = "succeeded"
    DEGRADED = "degraded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is so: a code for machines, a sentence for people, and the facts behind it.

    `until` is the time at which it ends by itself, where that is known: by the database's clock.
    """

    code: Code
    text: str
    facts: Mapping[str, object]
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job does not run, and when it will; or that it runs, or how it ended.

    `code`, `text`, `facts` and `until` are of what is so now: the first of the `blockers` where there are
    any. `blockers` is all that keeps the job from running, in the order of what must happen next. It is
    empty for a job that the next free slot takes, that runs, or that has ended.
    """

    job_id: JobId
    state: State
    code: Code
    text: str
    facts: Mapping[str, object]
    until: datetime | None
    blockers: tuple[Finding, ...]


def in_utc(at: datetime) -> str:
    """A time as the words of a finding have it, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
