"""What every statement that runs now already sees (spec P-04, P-07).

A receipt may be deleted only when no statement can run any more that does not see why its command is
refused: one that began before may still wait for a lock, and would then find neither the refusal nor
the receipt. So the refusal is written first, by a transaction of its own, and what it covers is
deleted when the row that says so is older than the horizon. No clock takes part.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.store.sql import Statement

__all__ = ["horizon"]

# The oldest transaction that runs, or that some statement's snapshot takes for running. Every role
# may read backend_xmin of every other's; the server's own vacuum, which has no user, sends no
# statement of ours. A row whose xmin is older was committed before all of them began:
# `age(xmin) > age(horizon)`, since ages compare rightly where 32-bit ids do not.
_HORIZON = Statement(
    """
    SELECT CAST(x AS text) AS oldest
    FROM (SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS xid)
          UNION ALL
          SELECT a.backend_xmin
          FROM pg_stat_activity a
          WHERE a.datname = current_database() AND a.usesysid IS NOT NULL AND a.backend_xmin IS NOT NULL) AS seen(x)
    ORDER BY age(x) DESC
    LIMIT 1
    """
)


def horizon(c: Connection) -> str:
    """The id of the oldest transaction that is not over for everybody; for `age(CAST(:horizon AS xid))`."""
    row = _HORIZON.row(c)
    assert row is not None
    return str(row.oldest)
