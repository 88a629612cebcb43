"""prune_sessions: forget workers' receipts that nobody will ask for, then sessions long over (spec P-04, P-29).

A live session's receipts go up to its low-water mark; those of one that is over stay for some days, so
that the fate of its last commands can be resolved. As with other receipts, the refusal comes first:
`receipts_below` is written, and what lies below it is deleted once no statement runs that began before.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune.batches import Pruned, check
from testigo.authority.prune.horizon import horizon
from testigo.settings import RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_sessions"]

_DELETE = Statement(
    """
    DELETE FROM testigo.session_receipt
    WHERE (session_id, n, ordinal) IN (
        SELECT r.session_id, r.n, r.ordinal
        FROM testigo.session_profile p
             CROSS JOIN LATERAL (
                 SELECT r.session_id, r.n, r.ordinal
                 FROM testigo.session_receipt r
                 WHERE r.session_id = p.session_id AND r.n < p.receipts_below
                 ORDER BY r.n, r.ordinal
                 LIMIT :limit
                 FOR UPDATE SKIP LOCKED
             ) r
        WHERE p.receipts_below > 0 AND age(p.xmin) > age(CAST(:horizon AS xid))
        LIMIT :limit
    )
    RETURNING 1
    """
)

# The profile's row is older than the horizon, so no statement runs that takes the session for open.
# What it still holds is the sweeps' to take back, and it stays for them until then.
_FORGET = Statement(
    """
    WITH over AS MATERIALIZED (
        SELECT p.session_id
        FROM testigo.session_profile p
        WHERE p.receipts_below = :all AND age(p.xmin) > age(CAST(:horizon AS xid))
          AND NOT EXISTS (SELECT FROM testigo.session_receipt r WHERE r.session_id = p.session_id)
          AND NOT EXISTS (SELECT FROM testigo.job j WHERE j.session_id = p.session_id AND j.lease_id IS NOT NULL)
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ),
    forgotten AS (
        DELETE FROM testigo.session WHERE id IN (SELECT session_id FROM over)
    )
    DELETE FROM testigo.session_profile WHERE session_id IN (SELECT session_id FROM over)
    RETURNING 1
    """
)

# Only rows whose last change everybody sees: one that is written again before its turn never gets it.
# A live session's is written once for so many commands, and not at every sweep.
_MARK = Statement(
    """
    UPDATE testigo.session_profile p
    SET receipts_below = due.below
    FROM (
        SELECT p.session_id, CASE WHEN s.state IN ('open', 'draining') THEN s.low_water ELSE :all END AS below
        FROM testigo.session_profile p JOIN testigo.session s ON s.id = p.session_id
        WHERE age(p.xmin) > age(CAST(:horizon AS xid))
          AND CASE WHEN s.state IN ('open', 'draining') THEN s.low_water - p.receipts_below >= :limit
                   ELSE p.receipts_below < :all AND p.closed_at < now() - :days * interval '1 day' END
        LIMIT :limit
        FOR UPDATE OF p SKIP LOCKED
    ) AS due
    WHERE p.session_id = due.session_id
    """
)

_ALL = 2**63 - 1
"""Above every n."""


def prune_sessions(
    c: Connection, *, older_than_days: int = RETENTION.receipts_days, limit: int = STORE.sweep_rows
) -> Pruned:
    """Forget at most `limit` receipts of workers, and as many sessions that have been over for so long.

    A session that still holds leases stays, and a live one keeps up to `limit` receipts below its
    low-water mark. What one call marks, later ones delete; while a statement runs that is older than
    the mark, nothing of it is deleted.
    """
    check(older_than_days, limit)
    seen = horizon(c)
    deleted = len(_DELETE.rows(c, horizon=seen, limit=limit))
    if deleted == limit:
        return Pruned(deleted, more=True)
    forgotten = len(_FORGET.rows(c, horizon=seen, limit=limit, all=_ALL))
    _MARK.rows(c, horizon=seen, days=older_than_days, limit=limit, all=_ALL)
    return Pruned(deleted + forgotten, more=forgotten == limit)
