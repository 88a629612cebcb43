"""How an ended job goes: behind a tombstone, with the whole chain of jobs whose place it took (spec P-04, P-26)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import new_id
from testigo.rules.identity import digest
from testigo.store.sql import Statement

__all__ = ["bury", "chains_of", "judge", "whole"]

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

# The digests are of the exact texts, taken where they are.
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
    progress AS (DELETE FROM testigo.progress WHERE job_id IN (SELECT id FROM gone)),
    lines AS (DELETE FROM testigo.job_log WHERE job_id IN (SELECT id FROM gone)),
    successors AS (DELETE FROM testigo.successor WHERE job_id IN (SELECT id FROM gone))
    DELETE FROM testigo.job WHERE id IN (SELECT id FROM gone)
    """
)


def chains_of(c: Connection, ids: Sequence[str]) -> list[list[str]]:
    """Of those of these jobs that have no successor, each with all whose place it took, itself first."""
    chains: dict[str, list[str]] = {}
    for row in _CHAINS.rows(c, ids=ids) if ids else []:
        chains.setdefault(row.last, []).append(row.id)
    return list(chains.values())


def judge(c: Connection, locked: Sequence[str]) -> dict[str, Row[Any]]:
    """What decides whether these jobs may go. They are locked: whoever reprocesses or waits for one locks it first."""
    _UNDATE.rows(c, ids=locked)
    return {row.id: row for row in _JUDGE.rows(c, ids=locked)}


def whole(chain: Sequence[str], judged: Mapping[str, Row[Any]]) -> list[Row[Any]] | None:
    """The jobs of a chain, its last one first, or None if any of them must stay."""
    members = [judged[job_id] for job_id in chain if job_id in judged]
    if len(members) < len(chain) or any(row.needed for row in members) or members[0].successor is not None:
        return None
    return members


def bury(
    c: Connection,
    chains: Iterable[Sequence[Row[Any]]],
    note: Callable[[Row[Any]], str],
    *,
    actor: str,
    action: str,
) -> list[str]:
    """Remove the jobs of these chains behind tombstones, with all that is kept beside them; returns their ids.

    A chain's key stays with the tombstone of its last job.
    """
    rows = [(row, members[-1] if row is members[0] else None) for members in chains for row in members]
    if not rows:
        return []
    removed = [str(row.id) for row, _ in rows]
    _BURY.rows(
        c,
        actor=actor,
        action=action,
        ids=[new_id() for _ in rows],
        jobs=removed,
        states=[row.state for row, _ in rows],
        digests=[digest("pruned", {"job": row.id, "payload": row.payload, "output": row.output}) for row, _ in rows],
        notes=[note(row) for row, _ in rows],
        clients=[first and first.client for _, first in rows],
        kinds=[first and first.kind for _, first in rows],
        keys=[first and first.key for _, first in rows],
    )
    _REMOVE.rows(c, ids=removed)
    return removed
