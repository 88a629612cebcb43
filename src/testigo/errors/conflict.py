"""The world is not as the caller thought: nothing was done."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "ActionIdCollision",
    "CollectionChanged",
    "Conflict",
    "EpochStale",
    "KeyConflict",
    "LeaseLost",
    "ReceiptExpired",
    "RevisionMismatch",
    "ScanEvidenceConflict",
    "SessionBusy",
    "SessionReplaced",
    "StateConflict",
    "Terminal",
    "WrongPublisher",
]


class Conflict(
    Error,
    code="CONFLICT",
    http_status=409,
    exit_status=12,
    remedy="Read the current state and decide again.",
):
    """The world is not as the command assumed. Nothing was written."""


class KeyConflict(
    Conflict,
    code="KEY_CONFLICT",
    remedy="Use another key for other work, or resubmit exactly what was submitted first.",
):
    """A submission key already names a job that was asked for with other content (spec D-01)."""


class ActionIdCollision(
    Conflict,
    code="ACTION_ID_COLLISION",
    remedy="Use a new action id whenever the content of a command changes.",
):
    """An action id was used before with other content (spec B-04)."""


class ReceiptExpired(
    Conflict,
    code="RECEIPT_EXPIRED",
    http_status=410,
    remedy="Look at the job itself: the receipt is pruned, so the command was not executed again.",
):
    """The command is older than the receipts that are kept, so it is refused (spec P-04)."""


class StateConflict(Conflict, code="STATE_CONFLICT", remedy="Read the job's state; the command does not apply to it."):
    """The transition table has no such edge from the job's state."""


class Terminal(StateConflict, code="TERMINAL", remedy="A finished job never changes; reprocess it to run it again."):
    """The job has ended, and what has ended does not change (spec A-06)."""


class RevisionMismatch(
    Conflict,
    code="REVISION_MISMATCH",
    remedy="Look at the job as it is now, and decide again: it has changed since you saw it.",
):
    """The job is no longer as the caller saw it; `facts` name its state and revision now."""


class ScanEvidenceConflict(
    Conflict,
    code="SCAN_EVIDENCE_CONFLICT",
    remedy="Look at the analysis: it is published, and what people decided there stays. A new scan makes a new one.",
):
    """The analysis has findings or artifacts already, and evidence is inserted once (spec D-07, D-10)."""


class WrongPublisher(
    Conflict,
    code="WRONG_PUBLISHER",
    remedy="Leave publishing to the job that began with the analysis, or reprocess the analysis.",
):
    """Another job publishes the analysis; `facts` name it, and nothing was published or ended (spec D-05, P-30)."""


class CollectionChanged(
    Conflict,
    code="COLLECTION_CHANGED",
    remedy="Load the list again from its first page: it has changed since you saw it.",
):
    """The findings are no longer those that the page or detail was read from; `facts` name the revision now
    (spec D-19)."""


class LeaseLost(Conflict, code="LEASE_LOST", remedy="Stop the work: another run owns the job, or nobody does."):
    """The caller does not hold the lease it names (spec D-03)."""


class EpochStale(LeaseLost, code="EPOCH_STALE", remedy="Stop the work: the job was granted again at a higher epoch."):
    """The caller's epoch is not the job's (spec P-15)."""


class SessionReplaced(
    Conflict,
    code="SESSION_REPLACED",
    remedy="Stop: another process took this agent's place. Open a new session to work again.",
):
    """The session is no longer open: it was replaced, closed or declared dead (spec P-16)."""


class SessionBusy(
    Conflict,
    code="SESSION_BUSY",
    remedy="Wait until the agent's live session ends, choose another name, or open with replace.",
):
    """The agent's name is exclusive and its session lives (spec P-21)."""
