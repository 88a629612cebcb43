"""Kinds of jobs: who runs them, what of them waits, and what is paused (spec P-14).

A kind has no row of its own, and no index leads from one to its jobs: its name is known from the
sessions that run it, from a pause, and from the newest jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.read.queues import Pause
from testigo.rules.pausing import Scope
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["KindView", "kinds"]


@dataclass(frozen=True, slots=True)
class KindView:
    """A kind as it stands: how many of the newest jobs are of it, and how many open sessions run it.

    Of those jobs `waiting` are owned by nobody and have not ended, `leased` are owned, and `failed` have
    failed for good.
    """

    name: str
    waiting: int
    leased: int
    failed: int
    sessions: int
    pause: Pause | None


_KINDS = Statement(
    """
    WITH newest AS MATERIALIZED (
        SELECT kind, state, lease_id
        FROM testigo.job
        ORDER BY id DESC
        LIMIT :walk
    ),
    counted AS (
        SELECT kind AS name, count(*) FILTER (WHERE lease_id IS NOT NULL) AS leased,
               count(*) FILTER (WHERE state = 'permanent_failure') AS failed,
               count(*) FILTER (WHERE state IN ('created', 'inputs_pending', 'ready', 'checkpointed',
                                                'retry_waiting', 'blocked_by_quality')) AS waiting
        FROM newest
        GROUP BY kind
    ),
    served AS MATERIALIZED (
        SELECT k.name, count(*) AS sessions
        FROM testigo.session s
             JOIN testigo.session_profile p ON p.session_id = s.id
             CROSS JOIN unnest(p.kinds) AS k(name)
        WHERE s.state = 'open'
        GROUP BY k.name
    ),
    known AS (
        SELECT name FROM counted
        UNION
        SELECT name FROM served
        UNION
        SELECT name FROM testigo.pause WHERE scope = 'kind'
    )
    SELECT k.name, coalesce(c.waiting, 0) AS waiting, coalesce(c.leased, 0) AS leased,
           coalesce(c.failed, 0) AS failed, coalesce(s.sessions, 0) AS sessions, p.actor, p.note, p.at
    FROM known k
         LEFT JOIN counted c ON c.name = k.name
         LEFT JOIN served s ON s.name = k.name
         LEFT JOIN testigo.pause p ON p.scope = 'kind' AND p.name = k.name
    ORDER BY k.name COLLATE "C"
    LIMIT :limit
    """
)


@single_statement
def kinds(c: Connection, *, limit: int = LIMITS.page_max) -> tuple[KindView, ...]:
    """The kinds that are known, by name: at most `limit`. Their counts are of `LIMITS.walk_rows` jobs."""
    rows = _KINDS.rows(c, walk=LIMITS.walk_rows, limit=limit)
    return tuple(
        KindView(
            name=row.name,
            waiting=row.waiting,
            leased=row.leased,
            failed=row.failed,
            sessions=row.sessions,
            pause=None if row.at is None else Pause(Scope.KIND, row.name, row.actor, row.note, row.at),
        )
        for row in rows
    )
