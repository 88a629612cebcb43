"""prune_jobs: remove jobs that ended long ago, each behind a tombstone (spec P-04, P-26).

No index serves this, since every claim and settle would pay for it. One walk over all jobs by id, from
the oldest, goes on from where it was (`prune_walk`), whoever sends the next batch, and begins anew at
most so often; so a job that has waited since long ago is looked at once a pass, and not by every batch.

What others still need stays: a parent that somebody waits for, and every job of a chain of reprocesses
until the last of them can go. A chain goes at once, and its key stays with the tombstone of its last job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action
from testigo.authority.prune.batches import Pruned, check
from testigo.authority.prune.burial import bury, chains_of, judge, whole
from testigo.settings import LIMITS, RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_jobs"]

_PASSES = 30
"""A pass over all jobs begins this often in the time that a job is kept: with 30 days, once a day."""

_AHEAD = timedelta(days=1)

_LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


# One pruner at a time; another finds nothing to do.
_BEGIN = Statement(
    """
    SELECT CAST(coalesce(w.place, '00000000-0000-0000-0000-000000000000') AS text) AS place, now() AS now,
           now() - :days * interval '1 day' AS cutoff,
           w.place IS NULL AND w.began_at > now() - :days * interval '1 day' / :passes AS rests
    FROM testigo.prune_walk w
    FOR UPDATE OF w SKIP LOCKED
    """
)

_GO_ON = Statement(
    """
    UPDATE testigo.prune_walk
    SET began_at = CASE WHEN place IS NULL THEN now() ELSE began_at END,
        place = CAST(:place AS uuid)
    """
)

# The last row is where the walk goes on, ripe or not.
_LOOK = Statement(
    """
    SELECT CAST(w.id AS text) AS id, w.ripe, w.n
    FROM (
        SELECT j.id, row_number() OVER (ORDER BY j.id) AS n,
               j.state IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
                   AND j.finished_at < CAST(:cutoff AS timestamptz) AS ripe
        FROM testigo.job j
        WHERE j.id > CAST(:place AS uuid) AND j.id < CAST(:end AS uuid)
        ORDER BY j.id
        LIMIT :walk
    ) AS w
    WHERE w.ripe OR w.n = :walk
    ORDER BY w.id
    LIMIT :limit
    """
)

_LOCK = Statement(
    """
    SELECT CAST(j.id AS text) AS id
    FROM testigo.job j
    WHERE j.id = ANY (CAST(:ids AS uuid[])) AND j.finished_at < CAST(:cutoff AS timestamptz)
    ORDER BY j.id
    FOR UPDATE SKIP LOCKED
    """
)


def prune_jobs(c: Connection, *, older_than_days: int = RETENTION.jobs_days, limit: int = STORE.sweep_rows) -> Pruned:
    """Remove jobs that ended longer ago than that: one step of the walk, at most about `limit` jobs.

    A job's key stays as long as its tombstone (`prune_tombstones`), so that work that was done is not
    done again: it is answered `existing`, with the id of the job that is gone. `more` says that the
    pass goes on.
    """
    check(older_than_days, limit)
    walk = _BEGIN.row(c, days=older_than_days, passes=_PASSES)
    if walk is None or walk.rests:
        return Pruned(0, more=False)
    ripe, place = _look(c, walk, limit)
    _GO_ON.rows(c, place=place)
    return Pruned(_prune(c, ripe, walk.cutoff, older_than_days), more=place is not None)


def _look(c: Connection, walk: Row[Any], limit: int) -> tuple[list[str], str | None]:
    """The next jobs that are ripe, and the place from which the walk goes on; None at its end.

    What was made after the cut-off is passed over, and so are ids of the coming day, for makers whose
    clocks are ahead. Ids beyond that are not of their time, and are walked as well.
    """
    ripe: list[str] = []
    for start, end in ((walk.place, _id_at(walk.cutoff)), (max(walk.place, _id_at(walk.now + _AHEAD)), _LAST)):
        rows = _LOOK.rows(c, place=start, end=end, cutoff=walk.cutoff, walk=LIMITS.walk_rows, limit=limit)
        ripe += [row.id for row in rows if row.ripe]
        if rows and (len(rows) == limit or rows[-1].n == LIMITS.walk_rows):
            return ripe, rows[-1].id
    return ripe, None


def _id_at(moment: datetime) -> str:
    """The least id that is made at a time: the first 48 bits of a UUIDv7 are milliseconds."""
    return str(UUID(int=int(moment.timestamp() * 1000) << 80))


def _prune(c: Connection, ripe: Sequence[str], cutoff: datetime, days: int) -> int:
    chains = chains_of(c, ripe)
    wanted = [job_id for chain in chains for job_id in chain]
    locked = [row.id for row in _LOCK.rows(c, ids=wanted, cutoff=cutoff)] if wanted else []
    if not locked:
        return 0
    judged = judge(c, locked)
    going = [members for chain in chains if (members := whole(chain, judged)) is not None]

    def note(row: Row[Any]) -> str:
        return f"kept for {days} days after its end at {row.finished_at.isoformat()}"

    return len(bury(c, going, note, actor="system", action=Action("system").id))
