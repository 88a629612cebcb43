"""prune_operations: forget what was done to many jobs long ago."""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune import Pruned
from testigo.authority.prune.batches import check
from testigo.settings import RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_operations"]

# The oldest by its id. What is left of it is told until its last item is gone.
_OLDEST = Statement(
    """
    SELECT CAST(id AS text) AS id
    FROM testigo.operation
    WHERE ended_at < now() - :days * interval '1 day'
    ORDER BY id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
    """
)

_REMOVE_ITEMS = Statement(
    """
    DELETE FROM testigo.operation_item
    WHERE operation_id = CAST(:id AS uuid)
      AND n IN (SELECT n
                FROM testigo.operation_item
                WHERE operation_id = CAST(:id AS uuid)
                ORDER BY n
                LIMIT :limit)
    RETURNING 1
    """
)

_REMOVE = Statement("DELETE FROM testigo.operation WHERE id = CAST(:id AS uuid)")


def prune_operations(
    c: Connection, *, older_than_days: int = RETENTION.operations_days, limit: int = STORE.sweep_rows
) -> Pruned:
    """Forget at most `limit` items of the oldest operation that ended longer ago, and the operation with its last."""
    check(older_than_days, limit)
    oldest = _OLDEST.row(c, days=older_than_days)
    if oldest is None:
        return Pruned(0, more=False)
    removed = len(_REMOVE_ITEMS.rows(c, id=oldest.id, limit=limit))
    if removed < limit:
        _REMOVE.rows(c, id=oldest.id)
    return Pruned(removed, more=True)
