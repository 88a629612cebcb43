"""Jobs listed from the newest (spec D-01, field case R59)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read.pages import FROM_NEWEST, Cursor, Listing, Page, an_id, check_limit
from testigo.rules import fields
from testigo.rules.states import PHASES, Phase, State
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["JobSummary", "jobs"]


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job as a listing shows it. `error_code` is the last failure's."""

    id: JobId
    queue: str
    kind: str
    state: State
    reason: str | None
    client: str
    key: str | None
    tags: tuple[str, ...]
    priority: int
    epoch: int
    failures: int
    losses: int
    attempts: int
    created_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error_code: str | None

    @property
    def phase(self) -> Phase:
        """The state in the coarser words of spec D-02."""
        return PHASES[self.state]


# The walk stops at a full page, or at so many rows; in that case its last row is the mark from which
# to go on, though it need not be wanted. What is shown of a row is fetched by its id, so that the
# walk itself carries nothing wide.
_LIST = Statement(
    """
    SELECT w.wanted, w.n, CAST(w.id AS text) AS id, j.*
    FROM (
        SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n,
               (CAST(:queue AS text) IS NULL OR j.queue = :queue)
                   AND (CAST(:kind AS text) IS NULL OR j.kind = :kind)
                   AND (CAST(:state AS testigo.job_state) IS NULL OR j.state = CAST(:state AS testigo.job_state))
                   AND (CAST(:tag AS text) IS NULL OR :tag = ANY (j.tags))
                   AND (CAST(:client AS text) IS NULL OR j.client = :client) AS wanted
        FROM testigo.job j
        WHERE j.id < CAST(:before AS uuid)
        ORDER BY j.id DESC
        LIMIT :walk
    ) AS w
    CROSS JOIN LATERAL (
        SELECT j.queue, j.kind, CAST(j.state AS text) AS state, j.reason, j.client, j.key, j.tags, j.priority,
               j.epoch, j.failures, j.losses, j.attempts, j.created_at, j.due_at, j.started_at, j.finished_at,
               CAST(j.error AS json) ->> 'code' AS error_code
        FROM testigo.job j
        WHERE j.id = w.id
        OFFSET 0
    ) AS j
    WHERE w.wanted OR w.n = :walk
    ORDER BY w.id DESC
    LIMIT :limit + 1
    """
)


@single_statement
def jobs(
    c: Connection,
    *,
    queue: str | None = None,
    kind: str | None = None,
    state: State | None = None,
    tag: str | None = None,
    client: str | None = None,
    before: Cursor | None = None,
    limit: int = 100,
) -> Page[JobSummary]:
    """Jobs from the newest, by their ids, that have all of what is given.

    Only ids are indexed for this, so one page looks at `LIMITS.walk_rows` jobs at most, whatever is
    asked for: see `Page.complete`. Raises `Invalid`, and `CursorInvalid` for the cursor of another
    listing, or of the same with other filters.
    """
    check_limit(limit)
    asked = {"queue": queue, "kind": kind, "tag": tag, "client": client}
    for name, value in asked.items():
        if value is not None:
            fields.name(value, field=name)
    wanted = asked | {"state": None if state is None else fields.member(state, State, field="state")}
    listing = Listing("jobs", tuple(wanted.values()), (an_id,))
    (start,) = listing.position(before, FROM_NEWEST)
    rows = _LIST.rows(c, **wanted, before=start, walk=LIMITS.walk_rows, limit=limit)
    found = [(_summary(row), (row.id,)) for row in rows if row.wanted]
    mark = (rows[-1].id,) if rows and rows[-1].n == LIMITS.walk_rows else None
    return listing.page(found, limit, mark)


def _summary(row: Row[Any]) -> JobSummary:
    return JobSummary(
        id=JobId(row.id),
        queue=row.queue,
        kind=row.kind,
        state=State(row.state),
        reason=row.reason,
        client=row.client,
        key=row.key,
        tags=tuple(row.tags or ()),
        priority=row.priority,
        epoch=row.epoch,
        failures=row.failures,
        losses=row.losses,
        attempts=row.attempts,
        created_at=row.created_at,
        due_at=row.due_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error_code=row.error_code,
    )
