"""Who sends a command, under which name: the identity that its receipt is kept by (spec B-04, P-01).

Ids and times are made here, before the first try, and never again: a command that is sent twice
carries the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NewType

import uuid_utils

from testigo.rules import fields

__all__ = ["Action", "JobId", "SessionAction", "SessionId", "new_id"]

JobId = NewType("JobId", str)
SessionId = NewType("SessionId", str)


def new_id() -> str:
    """A new UUIDv7 as text: unique for ever, and ordered by the time of its making."""
    return str(uuid_utils.uuid7())


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Action:
    """One command of anybody but a worker: `actor` and `id` name its receipt.

    `created_at` is when the command was made; one that is older than the receipts that are kept is
    refused with `RECEIPT_EXPIRED` and never executed (spec P-04).
    """

    actor: str
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        fields.name(self.actor, field="action.actor")
        fields.name(self.id, field="action.id")
        fields.moment(self.created_at, field="action.created_at")


@dataclass(frozen=True, slots=True)
class SessionAction:
    """One command of a worker's session: the `n`-th, counted by the keeper from 1 (spec P-04).

    `ordinal` is 0 for the command itself; a row of a batch that was deferred is settled by an
    action of its own, named by its place in the batch, from 1 (spec P-09).
    """

    session_id: SessionId
    agent: str
    n: int
    ordinal: int = 0

    def __post_init__(self) -> None:
        fields.must_be_id(self.session_id, field="action.session_id")
        fields.name(self.agent, field="action.agent")
        fields.whole(self.n, field="action.n", low=1, high=fields.BIGINT_MAX)
        fields.whole(self.ordinal, field="action.ordinal", low=0, high=fields.INTEGER_MAX)

    @property
    def actor(self) -> str:
        """The agent, as events name it."""
        return self.agent

    @property
    def id(self) -> str:
        """The command's name in events."""
        return f"{self.session_id}:{self.n}" + (f":{self.ordinal}" if self.ordinal else "")
