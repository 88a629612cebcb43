"""prune_tombstones: forget, after the stated time, that there was a job, and its key with it (spec P-04)."""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune.batches import Pruned, check
from testigo.settings import RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_tombstones"]

# By the ids, whose order is that of time. The tombstone of a redaction stays for as long as its job,
# since it says which text of it is a mark and no document.
_FORGET = Statement(
    """
    WITH gone AS (
        DELETE FROM testigo.tombstone
        WHERE id IN (
            SELECT t.id
            FROM testigo.tombstone t
            WHERE t.at < now() - :days * interval '1 day'
              AND (t.what = 'pruned' OR NOT EXISTS (SELECT FROM testigo.job j WHERE j.id = t.job_id))
            ORDER BY t.id
            LIMIT :limit
            FOR UPDATE SKIP LOCKED
        )
        RETURNING job_id, client, kind, key
    ),
    forgotten AS (
        DELETE FROM testigo.submission s
        USING gone
        WHERE (s.client, s.kind, s.key) = (gone.client, gone.kind, gone.key) AND s.job_id = gone.job_id
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM forgotten) AS keys
    """
)


def prune_tombstones(
    c: Connection, *, older_than_days: int = RETENTION.tombstones_days, limit: int = STORE.sweep_rows
) -> Pruned:
    """Forget at most `limit` tombstones that are older, and the keys that still name their jobs.

    A key that is submitted after that is a new job's.
    """
    check(older_than_days, limit)
    row = _FORGET.row(c, days=older_than_days, limit=limit)
    gone = 0 if row is None else int(row.gone)
    return Pruned(gone, more=gone == limit)
