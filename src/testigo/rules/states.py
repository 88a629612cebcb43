"""The states of a job and the words that other vocabularies have for them (spec A-04, D-02, C-01).

The value of each member is its name on the wire, in SQL and on the command line.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CLAIMABLE", "EXPRESS", "LEASED", "PHASES", "TERMINAL", "WAITING", "Phase", "State"]


class State(StrEnum):
    """The thirteen states of spec A-04, and `cancelling` (spec D-02)."""

    CREATED = "created"
    """Accepted; waits for its time or for its admission."""
    INPUTS_PENDING = "inputs_pending"
    """Waits for its parents."""
    READY = "ready"
    """May be claimed now."""
    LEASED = "leased"
    """Granted to a session, and not started."""
    RUNNING = "running"
    """Its handler runs."""
    CHECKPOINTED = "checkpointed"
    """Left its place to others, and may be claimed now to go on from its checkpoint."""
    RETRY_WAITING = "retry_waiting"
    """Waits for the time of its next run."""
    BLOCKED_BY_QUALITY = "blocked_by_quality"
    """Needs something from outside; its reason says what."""
    CANCELLING = "cancelling"
    """Asked to stop; its holder has not answered."""
    SUCCEEDED = "succeeded"
    """Done; its output is kept."""
    SUCCEEDED_DEGRADED = "succeeded_degraded"
    """Done, within named limitations."""
    PERMANENT_FAILURE = "permanent_failure"
    """Failed, and not tried again; its reason says why."""
    CANCELLED = "cancelled"
    """Ended on request, or because a parent's end asks for it."""
    SUPERSEDED = "superseded"
    """Another job took its place."""


class Phase(StrEnum):
    """The public states of spec D-02: coarser, for people and other systems."""

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset(
    {
        State.SUCCEEDED,
        State.SUCCEEDED_DEGRADED,
        State.PERMANENT_FAILURE,
        State.CANCELLED,
        State.SUPERSEDED,
    }
)
"""What has ended and never changes again (spec A-06)."""

LEASED = frozenset({State.LEASED, State.RUNNING, State.CANCELLING})
"""What somebody owns: exactly these states have a lease."""

CLAIMABLE = frozenset({State.READY, State.CHECKPOINTED})
"""What a worker may take now, and nothing else is in the claim index (spec P-13)."""

WAITING = frozenset(State) - TERMINAL - LEASED
"""What nobody owns and has not ended: a cancel ends it at once."""

PHASES: dict[State, Phase] = {
    State.CREATED: Phase.QUEUED,
    State.INPUTS_PENDING: Phase.QUEUED,
    State.READY: Phase.QUEUED,
    State.LEASED: Phase.LEASED,
    State.RUNNING: Phase.RUNNING,
    State.CHECKPOINTED: Phase.QUEUED,
    State.RETRY_WAITING: Phase.QUEUED,
    State.BLOCKED_BY_QUALITY: Phase.QUEUED,
    State.CANCELLING: Phase.CANCELLING,
    State.SUCCEEDED: Phase.COMPLETED,
    State.SUCCEEDED_DEGRADED: Phase.COMPLETED,
    State.PERMANENT_FAILURE: Phase.FAILED,
    State.CANCELLED: Phase.CANCELLED,
    State.SUPERSEDED: Phase.CANCELLED,
}

EXPRESS: dict[State, str] = {
    State.READY: "pending",
    State.LEASED: "reserved",
    State.RUNNING: "processing",
    State.RETRY_WAITING: "pending (delayed)",
    State.SUCCEEDED: "completed",
    State.SUCCEEDED_DEGRADED: "completed",
    State.PERMANENT_FAILURE: "failed_jobs",
}
"""The express lane's word for a state, where it has one (spec C-01)."""
