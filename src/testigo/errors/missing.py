"""What the command names is not there, or no more."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "CursorTooOld",
    "Missing",
    "NotFound",
]


class Missing(Error, code="MISSING", http_status=404, exit_status=13, remedy="Check the id; it may have been pruned."):
    """What the command names is not there."""


class NotFound(Missing, code="NOT_FOUND"):
    """No such job, session, stream or parent."""


class CursorTooOld(
    Missing,
    code="CURSOR_TOO_OLD",
    http_status=410,
    remedy="Begin again from the stream's floor; what lies below it was pruned.",
):
    """The stream no longer holds the events after this cursor (spec B-10, P-27)."""
