"""What an operation is: a verb, a selection of jobs that was frozen, and what became of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType

from testigo.access.roles import Right
from testigo.authority.actions import JobId
from testigo.authority.batch import check_batch
from testigo.authority.read import EVERY, Count, Filter, JobSummary
from testigo.errors import Invalid
from testigo.rules.states import State

__all__ = [
    "RIGHT_OF",
    "Advanced",
    "Item",
    "Operation",
    "OperationId",
    "OperationState",
    "Outcome",
    "Preview",
    "Selection",
    "Stopped",
    "Verb",
]

OperationId = NewType("OperationId", str)


class Verb(StrEnum):
    """What is done to each job; the word of the command that does it."""

    CANCEL = "cancel"
    RETRY = "retry"
    """Done again, as a new job in its place."""
    UNBLOCK = "unblock"
    FORGET = "forget"
    """Deleted before its time, behind a tombstone."""


RIGHT_OF: Mapping[Verb, Right] = {
    Verb.CANCEL: Right.CANCEL,
    Verb.RETRY: Right.RETRY,
    Verb.UNBLOCK: Right.UNBLOCK,
    Verb.FORGET: Right.FORGET,
}
"""What whoever does it needs the right to: from its beginning to its end."""


class OperationState(StrEnum):
    """Where an operation stands."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    """Somebody stopped it, or whoever began it may not do that any more; the rest is left as it was."""


class Outcome(StrEnum):
    """What became of one job of an operation."""

    WAITING = "waiting"
    """Not yet come to, or never: the operation was stopped."""
    DONE = "done"
    REFUSED = "refused"
    """It does not qualify any more; its code says why, and nothing was done to it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The jobs that an operation is for: those that are named, or all that have what the filter asks for.

    Raises `Invalid` for both, for neither, and for what cannot be: an operation for every job there is has
    to say so by a filter that names something, such as a time.
    """

    ids: tuple[JobId, ...] = ()
    wanted: Filter = EVERY

    def __post_init__(self) -> None:
        if bool(self.ids) == (self.wanted != EVERY):
            raise Invalid("Name jobs, or say by a filter which; not both.", field="selection")
        if self.ids:
            check_batch(self.ids, "selection.ids")


@dataclass(frozen=True, slots=True)
class Preview:
    """What an operation would be for: how many jobs that qualify now, and the newest of them.

    `complete` is False where as many jobs were looked at as a preview may: the operation itself looks at
    `LIMITS.operation_walk_rows`, and may be for more than were counted.
    """

    count: Count
    sample: tuple[JobSummary, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as it stands; `total` jobs were frozen, of which so many are `done` or `refused`.

    `wanted` is what was asked for, with what the verb adds to it; None where the jobs were named. `reason` is what
    was given for it. `complete` is False where more jobs might have been wanted than a
    selection looks at. `hindrance` is what its last step failed by, which is done again later and later; or why it
    was stopped, where it is not `stopped_by` anybody. `replayed` says that an earlier send began it.
    """

    id: OperationId
    verb: Verb
    wanted: Filter | None
    reason: str
    actor: str
    action: str
    began_at: datetime
    state: OperationState
    total: int
    done: int
    refused: int
    complete: bool
    ended_at: datetime | None
    stopped_by: str | None
    hindrance: str | None
    replayed: bool = False

    @property
    def waiting(self) -> int:
        """How many it has not come to."""
        return self.total - self.done - self.refused


@dataclass(frozen=True, slots=True)
class Item:
    """One job of an operation, at its place from 1, and what became of it.

    `revision` is the job's when the selection was frozen. `state` is where it stood once it was done, or
    when it was refused with `code` and `message`; None of one that was gone. `successor` is the job that
    a retry made. `now` is where that one stands when it is asked for, or the job itself without one; None of one
    that is gone.
    """

    n: int
    job_id: JobId
    revision: int
    outcome: Outcome
    state: State | None
    code: str | None
    message: str | None
    successor: JobId | None
    now: State | None


class Advanced(NamedTuple):
    """What one step did: of which operation, to how many jobs, and whether that operation goes on."""

    operation_id: OperationId
    done: int
    refused: int
    more: bool
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The receipt of a stop: `stopped` is False where the operation had ended before."""

    operation_id: OperationId
    stopped: bool
    replayed: bool
