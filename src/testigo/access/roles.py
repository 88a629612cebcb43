"""Roles and what each may do: one table, read by every handler, template and test (panel.md *Access*)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

__all__ = ["RIGHTS", "Right", "Role"]


class Role(StrEnum):
    """What somebody is to this installation. Each user and each token has one."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    ADMIN = "admin"


class Right(StrEnum):
    """One thing that a role may do, or may not."""

    READ = "read"
    """See jobs, queues, workers and events, without what they hold."""
    DOCUMENTS = "documents"
    """See payloads, checkpoints, outputs and log lines."""
    AUDIT = "audit"
    """See who did what."""
    SUBMIT = "submit"
    CANCEL = "cancel"
    RETRY = "retry"
    UNBLOCK = "unblock"
    PAUSE = "pause"
    """Pause and resume queues and kinds."""
    DRAIN = "drain"
    """Have a worker finish what it has and take no more."""
    REVIEW = "review"
    """Decide on findings."""
    FORGET = "forget"
    """Delete failed jobs before their time."""
    REDACT = "redact"
    MANAGE = "manage"
    """Users, roles and tokens."""


_LOOK = frozenset({Right.READ, Right.DOCUMENTS, Right.AUDIT})

RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.READ}),
    Role.OPERATOR: _LOOK | {Right.SUBMIT, Right.CANCEL, Right.RETRY, Right.UNBLOCK, Right.PAUSE, Right.DRAIN},
    Role.REVIEWER: _LOOK | {Right.REVIEW},
    Role.ADMIN: frozenset(Right),
}
"""What each role may do; whatever is not here is refused."""
