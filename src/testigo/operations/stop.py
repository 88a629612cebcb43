"""stop: leave the rest of an operation undone."""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.authority.receipts import digest_of, exactly_once
from testigo.operations.model import OperationId, Stopped
from testigo.operations.read import told
from testigo.rules import fields
from testigo.store.sql import Statement

__all__ = ["stop"]

_STOP = Statement(
    """
    UPDATE testigo.operation
    SET state = 'stopped', ended_at = now(), stopped_by = :actor, hindrance = NULL
    WHERE id = CAST(:id AS uuid) AND state = 'running'
    RETURNING 1
    """
)


def stop(c: Connection, operation_id: OperationId, *, action: Action) -> Stopped:
    """Leave the rest of an operation undone; what was done stays done. Raises `NotFound`.

    A step that is under way comes to its end first: what it did is told by the operation.
    """
    fields.must_be_id(operation_id, field="operation")
    digest = digest_of(action, "operations.stop", [operation_id])
    receipt = exactly_once(c, action, digest, lambda: _stop(c, operation_id, action))
    return Stopped(operation_id, receipt.answer, receipt.replayed)


def _stop(c: Connection, operation_id: OperationId, action: Action) -> bool:
    if _STOP.rows(c, id=operation_id, actor=action.actor):
        return True
    told(c, operation_id)
    return False
