"""prune_jobs: remove jobs that ended long ago, each behind a tombstone (spec P-04, P-26).

No index serves this, since every claim and settle would pay for it. One walk over all jobs by id, from
the oldest, goes on from where it was (`prune_walk`), whoever sends the next batch, and begins anew at
most so often; so a job that has waited since long ago is looked at once a pass, and not by every batch.

What others still need stays: a parent that somebody waits for, and every job of a chain of reprocesses
until the last of them can go. A chain goes at once, and its key stays with the tombstone of its last job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action, new_id
from testigo.authority.prune.batches import Pruned, check
from testigo.rules.identity import digest
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

# Those that have no successor, each with the whole chain behind it.
_CHAINS = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT j.id AS last, j.id, j.supersedes, 1 AS n
        FROM testigo.job j
        WHERE j.id = ANY (CAST(:ids AS uuid[]))
          AND NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = j.id)
        UNION ALL
        SELECT c.last, j.id, j.supersedes, c.n + 1
        FROM chain c JOIN testigo.job j ON j.id = c.supersedes
    )
    SELECT CAST(last AS text) AS last, CAST(id AS text) AS id
    FROM chain
    ORDER BY n
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

# A sweep that holds a job's date is about to lock the job: it is let go first.
_UNDATE = Statement(
    """
    DELETE FROM testigo.lapse
    WHERE job_id IN (SELECT job_id
                     FROM testigo.lapse
                     WHERE job_id = ANY (CAST(:ids AS uuid[]))
                     FOR UPDATE SKIP LOCKED)
    """
)

# Read after the locks: whoever reprocesses a job or waits for one locks it first. The digests are of
# the exact texts, taken where they are.
_JUDGE = Statement(
    """
    SELECT CAST(j.id AS text) AS id, CAST(j.state AS text) AS state, j.finished_at, j.client, j.kind, j.key,
           CAST(s.successor_id AS text) AS successor,
           'sha256:' || encode(sha256(convert_to(j.payload, 'UTF8')), 'hex') AS payload,
           'sha256:' || encode(sha256(convert_to(j.output, 'UTF8')), 'hex') AS output,
           EXISTS (SELECT FROM testigo.edge e WHERE e.parent = j.id AND e.closed IS NULL)
               OR EXISTS (SELECT FROM testigo.lapse l WHERE l.job_id = j.id) AS needed
    FROM testigo.job j
         LEFT JOIN testigo.successor s ON s.job_id = j.id
    WHERE j.id = ANY (CAST(:ids AS uuid[]))
    """
)

_BURY = Statement(
    """
    INSERT INTO testigo.tombstone (id, job_id, what, state, digest, actor, action, note, at, client, kind, key)
    SELECT i.id, i.job_id, 'pruned', i.state, i.digest, :actor, :action, i.note, now(), s.client, s.kind, s.key
    FROM unnest(CAST(:ids AS uuid[]), CAST(:jobs AS uuid[]), CAST(:states AS testigo.job_state[]),
                CAST(:digests AS text[]), CAST(:notes AS text[]), CAST(:clients AS text[]), CAST(:kinds AS text[]),
                CAST(:keys AS text[]))
             AS i(id, job_id, state, digest, note, client, kind, key)
         LEFT JOIN testigo.submission s
             ON (s.client, s.kind, s.key) = (i.client, i.kind, i.key) AND s.job_id = i.job_id
    """
)

_REMOVE = Statement(
    """
    WITH gone AS MATERIALIZED (
        SELECT id FROM unnest(CAST(:ids AS uuid[])) AS gone(id)
    ),
    inputs AS (DELETE FROM testigo.edge WHERE child IN (SELECT id FROM gone)),
    dependents AS (DELETE FROM testigo.edge WHERE parent IN (SELECT id FROM gone)
                                              AND child NOT IN (SELECT id FROM gone)),
    late AS (DELETE FROM testigo.late WHERE job_id IN (SELECT id FROM gone)),
    successors AS (DELETE FROM testigo.successor WHERE job_id IN (SELECT id FROM gone))
    DELETE FROM testigo.job WHERE id IN (SELECT id FROM gone)
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
    chains: dict[str, list[str]] = {}
    for row in _CHAINS.rows(c, ids=ripe) if ripe else []:
        chains.setdefault(row.last, []).append(row.id)
    wanted = [job_id for chain in chains.values() for job_id in chain]
    locked = [row.id for row in _LOCK.rows(c, ids=wanted, cutoff=cutoff)] if wanted else []
    if not locked:
        return 0
    _UNDATE.rows(c, ids=locked)
    judged = {row.id: row for row in _JUDGE.rows(c, ids=locked)}
    going = [members for chain in chains.values() if (members := _whole(chain, judged)) is not None]
    if not going:
        return 0
    _BURY.rows(c, actor="system", action=Action("system").id, **_tombstones(going, days))
    removed = [row.id for members in going for row in members]
    _REMOVE.rows(c, ids=removed)
    return len(removed)


def _whole(chain: Sequence[str], judged: Mapping[str, Row[Any]]) -> list[Row[Any]] | None:
    """The jobs of a chain, its last one first, or None if any of them must stay."""
    members = [judged[job_id] for job_id in chain if job_id in judged]
    if len(members) < len(chain) or any(row.needed for row in members) or members[0].successor is not None:
        return None
    return members


def _tombstones(chains: Sequence[Sequence[Row[Any]]], days: int) -> dict[str, list[Any]]:
    rows = [(row, members[-1] if row is members[0] else None) for members in chains for row in members]
    return {
        "ids": [new_id() for _ in rows],
        "jobs": [row.id for row, _ in rows],
        "states": [row.state for row, _ in rows],
        "digests": [digest("pruned", {"job": row.id, "payload": row.payload, "output": row.output}) for row, _ in rows],
        "notes": [f"kept for {days} days after its end at {row.finished_at.isoformat()}" for row, _ in rows],
        "clients": [first and first.client for _, first in rows],
        "kinds": [first and first.kind for _, first in rows],
        "keys": [first and first.key for _, first in rows],
    }
