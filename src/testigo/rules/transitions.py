"""The state machine: one tuple of rows, read by everything that needs to know it.

Decisions, SQL, the documentation's table and diagram and the tests all read `TRANSITIONS`; nothing
else says which edge exists. One accepted command may walk several edges (a claim that starts walks
ready → leased → running), and every edge that it walks is here (spec A-05, P-24, model.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from testigo.errors import StateConflict, Terminal
from testigo.rules.states import TERMINAL, State

__all__ = ["DETAIL", "TRANSITIONS", "Command", "EventType", "Transition", "edges", "may", "walk"]


class Command(StrEnum):
    """What can move a job from one state to another."""

    ADMIT = "admit"
    """A stream is told of a submitted job."""
    PROMOTE = "promote"
    """What it waited for has come: its date, or the end of the wait before a retry."""
    INPUTS = "inputs"
    """A parent has ended."""
    CLAIM = "claim"
    """A worker takes it."""
    START = "start"
    """Its holder begins the run."""
    SUCCEED = "succeed"
    """Its holder reports that the work is done."""
    DEGRADE = "degrade"
    """Its holder reports that the work is done within limitations."""
    FAIL = "fail"
    """Its holder reports a failure."""
    BLOCK = "block"
    """Its holder reports that something from outside is needed."""
    YIELD = "yield"
    """Its holder lets others go first, and saves where it stands."""
    RELEASE = "release"
    """Its holder gives it back, as on a drain."""
    LOSE = "lose"
    """Its holder reports that what ran it is gone."""
    EXPIRE = "expire"
    """Its holder is gone, and a sweep takes it back."""
    RETIRE = "retire"
    """The system ends what must not be started any more."""
    CANCEL = "cancel"
    """Somebody cancels it."""
    UNBLOCK = "unblock"
    """What it needed is there."""
    SUPERSEDE = "supersede"
    """Its work is done again by a successor."""


class EventType(StrEnum):
    """The engine's own events of a plain job (spec A-03, P-27)."""

    REQUESTED = "job.requested"
    PROMOTED = "job.ready"
    LEASED = "job.leased"
    STARTED = "job.started"
    CHECKPOINTED = "job.checkpointed"
    RELEASED = "job.released"
    LOST = "job.lost"
    COMPLETED = "job.completed"
    DEGRADED = "job.degraded"
    FAILED = "job.failed"
    BLOCKED = "job.blocked"
    UNBLOCKED = "job.unblocked"
    CANCEL_REQUESTED = "job.cancel_requested"
    CANCELLED = "job.cancelled"
    SUPERSEDED = "job.superseded"
    REDACTED = "job.redacted"


DETAIL = frozenset(
    {EventType.PROMOTED, EventType.LEASED, EventType.STARTED, EventType.CHECKPOINTED, EventType.RELEASED}
)
"""Recorded only where a queue asks for `events = "full"` (spec P-27)."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One edge: from `source`, by `command`, to `target`.

    `event` is what the journal records when `command` walks it; `leased` says that only the holder
    of the job's lease may. Edges that another command walks in passing are silent.
    """

    source: State
    command: Command
    target: State
    event: EventType
    leased: bool = False


_C, _E, _S = Command, EventType, State

TRANSITIONS: tuple[Transition, ...] = (
    # accepted, and not yet claimable
    Transition(_S.CREATED, _C.ADMIT, _S.INPUTS_PENDING, _E.REQUESTED),
    Transition(_S.CREATED, _C.ADMIT, _S.READY, _E.REQUESTED),
    Transition(_S.CREATED, _C.PROMOTE, _S.READY, _E.PROMOTED),
    Transition(_S.CREATED, _C.PROMOTE, _S.INPUTS_PENDING, _E.PROMOTED),
    Transition(_S.INPUTS_PENDING, _C.INPUTS, _S.READY, _E.PROMOTED),
    Transition(_S.INPUTS_PENDING, _C.INPUTS, _S.PERMANENT_FAILURE, _E.FAILED),
    Transition(_S.INPUTS_PENDING, _C.INPUTS, _S.CANCELLED, _E.CANCELLED),
    # owned
    Transition(_S.READY, _C.CLAIM, _S.LEASED, _E.LEASED),
    Transition(_S.LEASED, _C.START, _S.RUNNING, _E.STARTED, leased=True),
    Transition(_S.CHECKPOINTED, _C.CLAIM, _S.RUNNING, _E.STARTED),
    # settled by the holder
    Transition(_S.RUNNING, _C.SUCCEED, _S.SUCCEEDED, _E.COMPLETED, leased=True),
    Transition(_S.RUNNING, _C.DEGRADE, _S.SUCCEEDED_DEGRADED, _E.DEGRADED, leased=True),
    Transition(_S.RUNNING, _C.FAIL, _S.RETRY_WAITING, _E.FAILED, leased=True),
    Transition(_S.RUNNING, _C.FAIL, _S.PERMANENT_FAILURE, _E.FAILED, leased=True),
    Transition(_S.RUNNING, _C.BLOCK, _S.BLOCKED_BY_QUALITY, _E.BLOCKED, leased=True),
    Transition(_S.RUNNING, _C.YIELD, _S.CHECKPOINTED, _E.CHECKPOINTED, leased=True),
    Transition(_S.RUNNING, _C.RELEASE, _S.CHECKPOINTED, _E.RELEASED, leased=True),
    Transition(_S.RUNNING, _C.RELEASE, _S.RETRY_WAITING, _E.RELEASED, leased=True),
    Transition(_S.LEASED, _C.RELEASE, _S.READY, _E.RELEASED, leased=True),
    Transition(_S.CANCELLING, _C.SUCCEED, _S.SUCCEEDED, _E.COMPLETED, leased=True),
    Transition(_S.CANCELLING, _C.DEGRADE, _S.SUCCEEDED_DEGRADED, _E.DEGRADED, leased=True),
    Transition(_S.CANCELLING, _C.FAIL, _S.PERMANENT_FAILURE, _E.FAILED, leased=True),
    Transition(_S.CANCELLING, _C.FAIL, _S.CANCELLED, _E.CANCELLED, leased=True),
    Transition(_S.CANCELLING, _C.BLOCK, _S.CANCELLED, _E.CANCELLED, leased=True),
    Transition(_S.CANCELLING, _C.YIELD, _S.CANCELLED, _E.CANCELLED, leased=True),
    Transition(_S.CANCELLING, _C.RELEASE, _S.CANCELLED, _E.CANCELLED, leased=True),
    Transition(_S.RUNNING, _C.LOSE, _S.RETRY_WAITING, _E.LOST, leased=True),
    Transition(_S.RUNNING, _C.LOSE, _S.PERMANENT_FAILURE, _E.FAILED, leased=True),
    Transition(_S.CANCELLING, _C.LOSE, _S.CANCELLED, _E.CANCELLED, leased=True),
    # the lease died
    Transition(_S.LEASED, _C.EXPIRE, _S.READY, _E.RELEASED),
    Transition(_S.RUNNING, _C.EXPIRE, _S.RETRY_WAITING, _E.LOST),
    Transition(_S.RUNNING, _C.EXPIRE, _S.PERMANENT_FAILURE, _E.FAILED),
    Transition(_S.CANCELLING, _C.EXPIRE, _S.CANCELLED, _E.CANCELLED),
    # waiting for its time; a wait that is over walks on in the same command
    Transition(_S.RETRY_WAITING, _C.PROMOTE, _S.READY, _E.PROMOTED),
    Transition(_S.RETRY_WAITING, _C.RETIRE, _S.PERMANENT_FAILURE, _E.FAILED),
    Transition(_S.CHECKPOINTED, _C.RETIRE, _S.RETRY_WAITING, _E.FAILED),
    # past its start_by or finish_by, or beyond its budgets: the system itself ends it (P-24)
    Transition(_S.RUNNING, _C.RETIRE, _S.PERMANENT_FAILURE, _E.FAILED),
    Transition(_S.INPUTS_PENDING, _C.RETIRE, _S.PERMANENT_FAILURE, _E.FAILED),
    # control
    Transition(_S.CREATED, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.INPUTS_PENDING, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.READY, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.CHECKPOINTED, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.RETRY_WAITING, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.BLOCKED_BY_QUALITY, _C.CANCEL, _S.CANCELLED, _E.CANCELLED),
    Transition(_S.LEASED, _C.CANCEL, _S.CANCELLING, _E.CANCEL_REQUESTED),
    Transition(_S.RUNNING, _C.CANCEL, _S.CANCELLING, _E.CANCEL_REQUESTED),
    Transition(_S.BLOCKED_BY_QUALITY, _C.UNBLOCK, _S.READY, _E.UNBLOCKED),
    Transition(_S.READY, _C.SUPERSEDE, _S.SUPERSEDED, _E.SUPERSEDED),
    Transition(_S.BLOCKED_BY_QUALITY, _C.SUPERSEDE, _S.SUPERSEDED, _E.SUPERSEDED),
)

_BY_EDGE = {(t.source, t.command, t.target): t for t in TRANSITIONS}


def edges(source: State, command: Command) -> tuple[Transition, ...]:
    """The rows of the table that `command` has from `source`; empty when it has none."""
    return tuple(t for t in TRANSITIONS if t.source is source and t.command is command)


def may(source: State, command: Command) -> bool:
    """Whether `command` can move a job out of `source` at all."""
    return bool(edges(source, command))


def walk(source: State, command: Command, steps: Iterable[tuple[Command, State]]) -> Transition:
    """Walk `steps` from `source` through the table, on behalf of `command`.

    Returns the last edge that `command` itself walks: its event is the one that the journal
    records. Raises `Terminal` or `StateConflict` at the first edge that is not in the table
    (spec A-05, A-06).
    """
    here, own = source, None
    for step, target in steps:
        edge = _BY_EDGE.get((here, step, target))
        if edge is None:
            refused = Terminal if here in TERMINAL else StateConflict
            raise refused(f"`{step}` does not apply to a job that is {here}.", state=str(here), command=str(step))
        if step is command:
            own = edge
        here = target
    if own is None:
        raise StateConflict(f"A walk for {command} has no edge of its own.", state=str(source), command=str(command))
    return own
