"""Operations as they stand, and what became of each of their jobs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import FROM_NEWEST, Listing, an_id, check_limit
from testigo.errors import NotFound
from testigo.operations.model import Item, Operation, OperationId, OperationState, Outcome, Verb
from testigo.operations.selection import from_text
from testigo.rules import fields
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["items", "operation", "operations", "told"]

_OPERATION = Statement("SELECT *, CAST(id AS text) AS name FROM testigo.operation WHERE id = CAST(:id AS uuid)")

# There are as many as people ordered, so all may be looked at.
_OPERATIONS = Statement(
    """
    SELECT *, CAST(id AS text) AS name
    FROM testigo.operation
    WHERE id < CAST(:before AS uuid) AND (CAST(:state AS text) IS NULL OR state = :state)
    ORDER BY id DESC
    LIMIT :limit + 1
    """
)

_ITEMS = Statement(
    """
    SELECT i.n, CAST(i.job_id AS text) AS job_id, i.revision, i.outcome, CAST(i.state AS text) AS state, i.code,
           i.message, CAST(i.successor_id AS text) AS successor, CAST(j.state AS text) AS now
    FROM (SELECT *
          FROM testigo.operation_item
          WHERE operation_id = CAST(:id AS uuid) AND n > :after
            AND (CAST(:outcome AS text) IS NULL OR outcome = :outcome)
          ORDER BY n
          LIMIT :limit + 1) AS i
         LEFT JOIN LATERAL (SELECT j.state
                            FROM testigo.job j
                            WHERE j.id = coalesce(i.successor_id, i.job_id)
                            OFFSET 0) AS j ON true
    ORDER BY i.n
    """
)

# The same, worded so that the index of what was refused is seen to have all of it.
_REFUSED = Statement(
    _ITEMS.sql.replace("(CAST(:outcome AS text) IS NULL OR outcome = :outcome)", "outcome = 'refused'")
)


@single_statement
def operation(c: Connection, operation_id: OperationId) -> Operation:
    """An operation as it stands; raises `NotFound`."""
    fields.must_be_id(operation_id, field="operation")
    return told(c, operation_id)


@single_statement
def operations(
    c: Connection, *, state: OperationState | None = None, before: Cursor | None = None, limit: int = 100
) -> Page[Operation]:
    """Operations from the newest: all, or those of one state."""
    check_limit(limit)
    wanted = None if state is None else fields.member(state, OperationState, field="state")
    listing = Listing("operations", (wanted,), (an_id,))
    (start,) = listing.position(before, FROM_NEWEST)
    rows = _OPERATIONS.rows(c, state=wanted, before=start, limit=limit)
    return listing.page([(_operation(row), (row.name,)) for row in rows], limit)


@single_statement
def items(
    c: Connection,
    operation_id: OperationId,
    *,
    outcome: Outcome | None = None,
    after: Cursor | None = None,
    limit: int = 100,
) -> Page[Item]:
    """The jobs of an operation in its order, or those of one outcome; raises `NotFound` for what is no operation."""
    fields.must_be_id(operation_id, field="operation")
    check_limit(limit)
    wanted = None if outcome is None else fields.member(outcome, Outcome, field="outcome")
    listing = Listing("items", (operation_id, wanted), (_a_place,))
    (start,) = listing.position(after, ("0",))
    asked = {"id": operation_id, "after": int(start), "limit": limit}
    rows = _REFUSED.rows(c, **asked) if wanted is Outcome.REFUSED else _ITEMS.rows(c, outcome=wanted, **asked)
    if not rows:
        told(c, operation_id)
    return listing.page([(_item(row), (str(row.n),)) for row in rows], limit)


def told(c: Connection, operation_id: OperationId, *, replayed: bool = False) -> Operation:
    """An operation as it stands, as a part of a command or a reading; raises `NotFound`."""
    row = _OPERATION.row(c, id=operation_id)
    if row is None:
        raise NotFound(f"There is no operation {operation_id}.", field="operation")
    return _operation(row, replayed=replayed)


def _operation(row: Row[Any], *, replayed: bool = False) -> Operation:
    return Operation(
        id=OperationId(row.name),
        verb=Verb(row.verb),
        wanted=from_text(row.selection),
        reason=row.reason,
        actor=row.actor,
        action=row.action,
        began_at=row.began_at,
        state=OperationState(row.state),
        total=row.total,
        done=row.done,
        refused=row.refused,
        complete=row.complete,
        ended_at=row.ended_at,
        stopped_by=row.stopped_by,
        hindrance=row.hindrance,
        replayed=replayed,
    )


def _item(row: Row[Any]) -> Item:
    return Item(
        n=row.n,
        job_id=JobId(row.job_id),
        revision=row.revision,
        outcome=Outcome(row.outcome),
        state=None if row.state is None else State(row.state),
        code=row.code,
        message=row.message,
        successor=None if row.successor is None else JobId(row.successor),
        now=None if row.now is None else State(row.now),
    )


def _a_place(part: str) -> None:
    fields.whole(int(part), field="cursor", low=1, high=LIMITS.operation_jobs_max)
