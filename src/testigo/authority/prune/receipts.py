"""prune_receipts: forget what commands answered, and never execute one again for it (spec P-04, B-04).

First the floor is raised to the newest creation time that is to be pruned: from then on, actions at or
below it are refused by the floor, not by a clock. What lies at or below it is deleted by later
transactions, once no statement runs that does not see the floor.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune.batches import Pruned, check
from testigo.authority.prune.horizon import horizon
from testigo.settings import RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_receipts"]

# Nobody but _RAISE changes the installation's row, so its xmin is the transaction that wrote the floor.
_DELETE = Statement(
    """
    DELETE FROM testigo.receipt
    WHERE (actor, action) IN (
        SELECT r.actor, r.action
        FROM testigo.installation i JOIN testigo.receipt r ON r.created_at <= i.receipt_floor
        WHERE age(i.xmin) > age(CAST(:horizon AS xid))
        ORDER BY r.created_at
        LIMIT :limit
        FOR UPDATE OF r SKIP LOCKED
    )
    RETURNING 1
    """
)

# Not before all is deleted that lies at or below the floor as it is: while it keeps rising, there is
# always a statement that is older.
_RAISE = Statement(
    """
    UPDATE testigo.installation i
    SET receipt_floor = newest.created_at
    FROM (SELECT created_at
          FROM testigo.receipt
          WHERE created_at < now() - :days * interval '1 day'
          ORDER BY created_at DESC
          LIMIT 1) AS newest
    WHERE newest.created_at > i.receipt_floor
      AND NOT EXISTS (SELECT FROM testigo.receipt r WHERE r.created_at <= i.receipt_floor)
    RETURNING 1
    """
)


def prune_receipts(
    c: Connection, *, older_than_days: int = RETENTION.receipts_days, limit: int = STORE.sweep_rows
) -> Pruned:
    """Forget at most `limit` receipts of commands that are older; workers' own go with `prune_sessions`.

    One call raises the floor, later ones delete; while a statement runs that is older than the floor,
    nothing is deleted.
    """
    check(older_than_days, limit)
    deleted = len(_DELETE.rows(c, horizon=horizon(c), limit=limit))
    raised = not deleted and bool(_RAISE.rows(c, days=older_than_days))
    return Pruned(deleted, more=raised or deleted == limit)
