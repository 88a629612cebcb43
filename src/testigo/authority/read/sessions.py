"""Sessions as they stand, listed from the newest (spec P-16, P-18, P-21)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import SessionId
from testigo.authority.read.pages import FROM_NEWEST, Count, Cursor, Listing, Page, an_id, check_limit, counted
from testigo.errors import NotFound
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["SessionState", "SessionView", "session", "sessions"]


class SessionState(StrEnum):
    """Where a session stands; only one that is open claims, and only the first two hold what they have."""

    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"
    REPLACED = "replaced"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class SessionView:
    """A worker's term of office: what it said of itself, its last beat, and how many leases it holds.

    A beat is a number: how old it is nobody knows who did not watch it (spec P-18). Below `low_water`
    no receipt of its commands is kept.
    """

    id: SessionId
    agent: str
    epoch: int
    state: SessionState
    beat: int
    low_water: int
    term_seconds: float
    exclusive: bool
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    host: str
    processes: Mapping[str, Any]
    opened_at: datetime
    closed_at: datetime | None
    leases: Count


# As with jobs: the walk is bounded, and its last row the mark from which to go on.
_LIST = Statement(
    """
    SELECT w.wanted, w.n, CAST(w.id AS text) AS id, s.agent, s.epoch, s.state, s.beat, s.low_water,
           s.term_seconds, s.exclusive, p.queues, p.kinds, p.host, p.processes, p.opened_at, p.closed_at,
           (SELECT count(*)
            FROM (SELECT FROM testigo.job j
                  WHERE j.session_id = w.id AND j.lease_id IS NOT NULL
                  LIMIT :count_max + 1) AS held) AS leases
    FROM (
        SELECT s.id, row_number() OVER (ORDER BY s.id DESC) AS n,
               (CAST(:agent AS text) IS NULL OR s.agent = :agent)
                   AND (CAST(:state AS text) IS NULL OR s.state = :state) AS wanted
        FROM testigo.session s
        WHERE s.id < CAST(:before AS uuid) AND (CAST(:only AS uuid) IS NULL OR s.id = CAST(:only AS uuid))
        ORDER BY s.id DESC
        LIMIT :walk
    ) AS w
    CROSS JOIN LATERAL (SELECT * FROM testigo.session WHERE id = w.id OFFSET 0) AS s
    CROSS JOIN LATERAL (SELECT * FROM testigo.session_profile WHERE session_id = w.id OFFSET 0) AS p
    WHERE w.wanted OR w.n = :walk
    ORDER BY w.id DESC
    LIMIT :limit + 1
    """
)


@single_statement
def sessions(
    c: Connection,
    *,
    agent: str | None = None,
    state: SessionState | None = None,
    before: Cursor | None = None,
    limit: int = 100,
) -> Page[SessionView]:
    """Sessions from the newest, by their ids; those that are over are kept for some days."""
    check_limit(limit)
    if agent is not None:
        fields.name(agent, field="agent")
    wanted = {"agent": agent, "state": None if state is None else fields.member(state, SessionState, field="state")}
    listing = Listing("sessions", tuple(wanted.values()), (an_id,))
    (start,) = listing.position(before, FROM_NEWEST)
    bounds = {"walk": LIMITS.walk_rows, "count_max": LIMITS.count_max}
    rows = _LIST.rows(c, **wanted, only=None, before=start, limit=limit, **bounds)
    found = [(_view(row), (row.id,)) for row in rows if row.wanted]
    mark = (rows[-1].id,) if rows and rows[-1].n == LIMITS.walk_rows else None
    return listing.page(found, limit, mark)


@single_statement
def session(c: Connection, session_id: SessionId) -> SessionView:
    """One session, as `sessions` lists it. Raises `NotFound`."""
    fields.must_be_id(session_id, field="session")
    bounds = {"walk": 1, "count_max": LIMITS.count_max, "limit": 1}
    row = _LIST.row(c, agent=None, state=None, only=session_id, before=FROM_NEWEST[0], **bounds)
    if row is None:
        raise NotFound(f"There is no session {session_id}.", field="session")
    return _view(row)


def _view(row: Row[Any]) -> SessionView:
    return SessionView(
        id=SessionId(row.id),
        agent=row.agent,
        epoch=row.epoch,
        state=SessionState(row.state),
        beat=row.beat,
        low_water=row.low_water,
        term_seconds=row.term_seconds,
        exclusive=row.exclusive,
        queues=tuple(row.queues),
        kinds=tuple(row.kinds),
        host=row.host,
        processes=json.loads(row.processes),
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        leases=counted(row.leases),
    )
