"""Queues, what waits in them, and what is paused (spec P-13, P-14).

A queue comes to be by its first job and has no row of its own: its name is known from its stream,
from what was set or paused, and from the sessions that serve it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.read.pages import Count, Cursor, Listing, Page, a_name, check_limit, counted
from testigo.errors import NotFound
from testigo.rules import fields
from testigo.rules.pausing import Scope
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement, array

__all__ = ["Pause", "QueueView", "oldest_ready", "paused", "queue", "queues"]


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue or kind that no worker takes from: who paused it, when, and why."""

    scope: Scope
    name: str
    actor: str
    note: str
    at: datetime


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as it stands.

    `ready` can be claimed now, `delayed` waits for its time, of which `next_due_at` is the next, and
    `leased` is owned by somebody. `sessions` are open and list the queue. `events` and `stripes` are
    what was set for it.
    """

    name: str
    ready: Count
    delayed: Count
    leased: Count
    next_due_at: datetime | None
    sessions: Count
    events: str
    stripes: int
    pause: Pause | None


# Each count is of one index alone and stops at its bound. What is leased is counted once for all
# queues, since its index is by session: at its bound, every queue has at least so many.
_QUEUES = Statement(
    """
    WITH served AS MATERIALIZED (
        SELECT q.name, count(*) AS n
        FROM testigo.session s
             JOIN testigo.session_profile p ON p.session_id = s.id
             CROSS JOIN unnest(p.queues) AS q(name)
        WHERE s.state = 'open'
        GROUP BY q.name
    ),
    held AS MATERIALIZED (
        SELECT j.queue
        FROM testigo.job j
        WHERE j.lease_id IS NOT NULL
        ORDER BY j.session_id, j.grant_n
        LIMIT :count_max + 1
    ),
    leased AS (
        SELECT queue, count(*) AS n
        FROM held
        GROUP BY queue
    ),
    known AS (
        SELECT split_part(name, '#', 1) AS name FROM testigo.stream
        UNION
        SELECT name FROM testigo.queue
        UNION
        SELECT name FROM testigo.pause WHERE scope = 'queue'
        UNION
        SELECT name FROM served
    ),
    shown AS MATERIALIZED (
        SELECT name
        FROM known
        WHERE name > :after COLLATE "C" AND (CAST(:only AS text) IS NULL OR name = :only)
        ORDER BY name COLLATE "C"
        LIMIT :limit + 1
    )
    SELECT n.name,
           (SELECT count(*)
            FROM (SELECT FROM testigo.job j
                  WHERE j.queue = n.name AND j.state IN ('ready', 'checkpointed')
                  LIMIT :count_max + 1) AS counted) AS ready,
           (SELECT count(*)
            FROM (SELECT FROM testigo.job j
                  WHERE j.queue = n.name AND j.state IN ('created', 'retry_waiting') AND j.due_at IS NOT NULL
                  LIMIT :count_max + 1) AS counted) AS delayed,
           coalesce(l.n, 0) AS leased,
           (SELECT count(*) FROM held) > :count_max AS leased_more,
           (SELECT j.due_at
            FROM testigo.job j
            WHERE j.queue = n.name AND j.state IN ('created', 'retry_waiting') AND j.due_at IS NOT NULL
            ORDER BY j.due_at
            LIMIT 1) AS next_due_at,
           coalesce(s.n, 0) AS sessions,
           coalesce(q.events, 'default') AS events, coalesce(q.stripes, 1) AS stripes,
           p.scope, p.actor, p.note, p.at
    FROM shown n
         LEFT JOIN leased l ON l.queue = n.name
         LEFT JOIN served s ON s.name = n.name
         LEFT JOIN testigo.queue q ON q.name = n.name
         LEFT JOIN testigo.pause p ON p.scope = 'queue' AND p.name = n.name
    ORDER BY n.name COLLATE "C"
    """
)

# The index has each queue's jobs by priority first, so the oldest is the oldest of the first of each priority.
_OLDEST = Statement(
    """
    WITH RECURSIVE first AS (
        SELECT q.name AS queue, 1 AS level, f.priority, f.ready_at
        FROM unnest(CAST(:queues AS text[])) AS q(name)
             CROSS JOIN LATERAL (
                 SELECT j.priority, j.ready_at
                 FROM testigo.job j
                 WHERE j.queue = q.name AND j.state IN ('ready', 'checkpointed')
                 ORDER BY j.priority, j.ready_at, j.id
                 LIMIT 1) AS f
        UNION ALL
        SELECT p.queue, p.level + 1, f.priority, f.ready_at
        FROM first p
             CROSS JOIN LATERAL (
                 SELECT j.priority, j.ready_at
                 FROM testigo.job j
                 WHERE j.queue = p.queue AND j.state IN ('ready', 'checkpointed') AND j.priority > p.priority
                 ORDER BY j.priority, j.ready_at, j.id
                 LIMIT 1) AS f
        WHERE p.level < :levels
    )
    SELECT queue, min(ready_at) AS ready_at
    FROM first
    GROUP BY queue
    """
)

_LEVELS_MAX = 32

_PAUSED = Statement(
    """
    SELECT scope, name, actor, note, at
    FROM testigo.pause
    WHERE (scope COLLATE "C", name COLLATE "C") > (:scope, :name)
    ORDER BY scope COLLATE "C", name COLLATE "C"
    LIMIT :limit + 1
    """
)


@single_statement
def queues(c: Connection, *, after: Cursor | None = None, limit: int = 20) -> Page[QueueView]:
    """Every queue that is known, by name, with bounded counts of what is in it: the cost is `limit` times theirs."""
    check_limit(limit)
    listing = Listing("queues", (), (a_name,))
    (start,) = listing.position(after, ("",))
    rows = _QUEUES.rows(c, after=start, only=None, limit=limit, count_max=LIMITS.count_max)
    return listing.page([(_queue(row), (row.name,)) for row in rows], limit)


@single_statement
def queue(c: Connection, name: str) -> QueueView:
    """One queue, as `queues` lists it. Raises `NotFound` for one of which nothing is known."""
    fields.name(name, field="queue")
    rows = _QUEUES.rows(c, after="", only=name, limit=1, count_max=LIMITS.count_max)
    if not rows:
        remedy = "See the list of queues; one comes to be by its first job."
        raise NotFound(f"Nothing is known of a queue {name!r}.", field="queue", remedy=remedy)
    return _queue(rows[0])


@single_statement
def oldest_ready(c: Connection, names: Sequence[str]) -> Mapping[str, datetime]:
    """For each of these queues that has anything to claim, since when the oldest of it can be claimed.

    Of a queue that uses very many priorities at once only the first are looked at.
    """
    rows = _OLDEST.rows(c, queues=array(names), levels=_LEVELS_MAX)
    return {row.queue: row.ready_at for row in rows}


@single_statement
def paused(c: Connection, *, after: Cursor | None = None, limit: int = 100) -> Page[Pause]:
    """What is paused: kinds first, then queues, each by name."""
    check_limit(limit)
    listing = Listing("paused", (), (Scope, a_name))
    scope, name = listing.position(after, ("", ""))
    rows = _PAUSED.rows(c, scope=scope, name=name, limit=limit)
    return listing.page([(_pause(row), (row.scope, row.name)) for row in rows], limit)


def _queue(row: Row[Any]) -> QueueView:
    return QueueView(
        name=row.name,
        ready=counted(row.ready),
        delayed=counted(row.delayed),
        leased=Count(row.leased, row.leased_more),
        next_due_at=row.next_due_at,
        sessions=Count(row.sessions),
        events=row.events,
        stripes=row.stripes,
        pause=None if row.scope is None else _pause(row),
    )


def _pause(row: Row[Any]) -> Pause:
    return Pause(Scope(row.scope), row.name, row.actor, row.note, row.at)
