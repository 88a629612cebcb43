"""Jobs listed from the newest (spec D-01, field case R59)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read.filters import EVERY, Filter, Source
from testigo.authority.read.pages import FROM_NEWEST, Cursor, Listing, Page, an_id, check_limit
from testigo.authority.read.walk import over, source_of
from testigo.rules.states import PHASES, Phase, State
from testigo.settings import LIMITS
from testigo.store.command import single_statement

__all__ = ["JobSummary", "jobs"]


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job as a listing shows it.

    `agent` is who owns it; `error_code` and `error_message`, cut to 200 characters, are the last failure's;
    `successor` is the job that took its place.
    """

    id: JobId
    queue: str
    kind: str
    state: State
    reason: str | None
    client: str
    key: str | None
    tags: tuple[str, ...]
    priority: int
    revision: int
    epoch: int
    failures: int
    losses: int
    attempts: int
    created_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    agent: str | None
    error_code: str | None
    error_message: str | None
    successor: JobId | None

    @property
    def phase(self) -> Phase:
        """The state in the coarser words of spec D-02."""
        return PHASES[self.state]


# The walk stops at a full page, or at so many rows; in that case its last row is the mark from which
# to go on, though it need not be wanted. What is shown of a row is fetched by its id, so that the
# walk itself carries nothing wide.
_LIST = over(
    """
    SELECT w.wanted, w.n, CAST(w.id AS text) AS id, j.*, s.agent, CAST(n.successor_id AS text) AS successor
    FROM ($walk) AS w
    CROSS JOIN LATERAL (
        SELECT j.queue, j.kind, CAST(j.state AS text) AS state, j.reason, j.client, j.key, j.tags, j.priority,
               j.revision, j.epoch, j.failures, j.losses, j.attempts, j.created_at, j.due_at, j.started_at,
               j.finished_at, j.session_id, CAST(j.error AS json) ->> 'code' AS error_code,
               left(CAST(j.error AS json) ->> 'message', 200) AS error_message
        FROM testigo.job j
        WHERE j.id = w.id
        OFFSET 0
    ) AS j
    LEFT JOIN testigo.session s ON s.id = j.session_id
    LEFT JOIN testigo.successor n ON n.job_id = w.id
    WHERE w.wanted OR w.n = :walk
    ORDER BY w.id DESC
    LIMIT :limit + 1
    """
)


@single_statement
def jobs(c: Connection, wanted: Filter = EVERY, *, before: Cursor | None = None, limit: int = 100) -> Page[JobSummary]:
    """Jobs from the newest, by their ids, that have all of what is wanted.

    One page looks at `LIMITS.walk_rows` jobs at most, whatever is asked for: see `Page.complete`. By an index of
    its own it finds what failed for good or is blocked, what is owned, and what may be claimed or waits for its
    time as long as that is not more. Raises `Invalid`, and `CursorInvalid` for the cursor of another listing, or
    of the same with another filter.
    """
    check_limit(limit)
    listing = Listing("jobs", (wanted,), (an_id,))
    (start,) = listing.position(before, FROM_NEWEST)
    source = source_of(c, wanted, LIMITS.walk_rows)
    asked = {**wanted.parameters(), **wanted.sets()} if source is Source.FEW else wanted.parameters()
    rows = _LIST[source].rows(c, **asked, before=start, walk=LIMITS.walk_rows, limit=limit)
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
        revision=row.revision,
        epoch=row.epoch,
        failures=row.failures,
        losses=row.losses,
        attempts=row.attempts,
        created_at=row.created_at,
        due_at=row.due_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        agent=row.agent,
        error_code=row.error_code,
        error_message=row.error_message,
        successor=None if row.successor is None else JobId(row.successor),
    )
