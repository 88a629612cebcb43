"""What has failed for good and waits for somebody, by its cause (panel.md *Failed jobs*)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read.filters import Filter
from testigo.authority.read.pages import Count, check_limit
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Cause", "Failures", "causes", "open_failures"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Failed jobs that failed alike: by the code of their last failure and by its message without its numbers.

    `id` is what `Filter.cause` takes. `message` is the sample's own, cut to 200 characters; `code` is the reason
    why the job ended where no run of it failed. `open` have no successor; `retrying` are done again by one that
    has not ended. `kinds` and `queues` are some of them, by name. The times are of their ends.
    """

    id: str
    code: str
    message: str
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    open: int
    retrying: int
    first_at: datetime
    last_at: datetime
    sample: JobId


@dataclass(frozen=True, slots=True)
class Failures:
    """The causes of what is open, those of the most jobs first; and how many jobs there are in all.

    `complete` is False where there are more failed jobs than were looked at: the newest `LIMITS.causes_walk_rows`.
    """

    causes: tuple[Cause, ...]
    open: Count
    retrying: Count
    complete: bool


# What many have in common is looked for among what they say word for word first: to take the numbers out
# of a message costs more than all the rest. Of the jobs that came in a failed one's place, those that were
# superseded before they ran lead on to the next.
_CAUSES = Statement(
    """
    WITH RECURSIVE failed AS MATERIALIZED (
        SELECT j.id, j.queue, j.kind, j.finished_at, testigo.code_of(j.error, j.reason) AS code,
               testigo.message_of(j.error, j.reason) AS message, s.successor_id
        FROM (SELECT j.id, j.queue, j.kind, j.finished_at, j.error, j.reason
              FROM testigo.job j
              WHERE j.state = 'permanent_failure' AND j.id >= CAST(:from AS uuid)
              ORDER BY j.id DESC
              LIMIT :walk) AS j
             LEFT JOIN LATERAL (SELECT s.successor_id
                                FROM testigo.successor s
                                WHERE s.job_id = j.id
                                OFFSET 0) AS s ON true
        WHERE (CAST(:queue AS text) IS NULL OR j.queue = :queue) AND (CAST(:kind AS text) IS NULL OR j.kind = :kind)
    ),
    newer AS (
        SELECT f.id AS failed, f.successor_id AS id, 1 AS n
        FROM failed f
        WHERE f.successor_id IS NOT NULL
        UNION ALL
        SELECT w.failed, s.successor_id, w.n + 1
        FROM newer w
             CROSS JOIN LATERAL (SELECT FROM testigo.job j WHERE j.id = w.id AND j.state = 'superseded' OFFSET 0) AS j
             JOIN testigo.successor s ON s.job_id = w.id
        WHERE w.n < :hops
    ),
    alive AS MATERIALIZED (
        SELECT w.failed
        FROM newer w
             CROSS JOIN LATERAL (SELECT FROM testigo.job j WHERE j.id = w.id AND j.finished_at IS NULL OFFSET 0) AS j
    ),
    said AS (
        SELECT f.code, f.message, f.kind, f.queue, count(*) FILTER (WHERE a.failed IS NULL) AS open,
               count(a.failed) AS retrying, min(f.finished_at) AS first_at, max(f.finished_at) AS last_at,
               max(CAST(f.id AS text)) AS sample
        FROM failed f LEFT JOIN alive a ON a.failed = f.id
        WHERE f.successor_id IS NULL OR a.failed IS NOT NULL
        GROUP BY f.code, f.message, f.kind, f.queue
    ),
    alike AS (
        SELECT testigo.cause(code, message) AS id, code, max(sample) AS sample,
               (array_agg(message ORDER BY sample DESC))[1] AS message,
               (array_agg(DISTINCT kind))[1 : 10] AS kinds, (array_agg(DISTINCT queue))[1 : 10] AS queues,
               CAST(sum(open) AS bigint) AS open, CAST(sum(retrying) AS bigint) AS retrying,
               min(first_at) AS first_at, max(last_at) AS last_at
        FROM said
        GROUP BY testigo.cause(code, message), code
    )
    SELECT a.*, t.*
    FROM (SELECT (SELECT count(*)
                  FROM (SELECT FROM testigo.job j
                        WHERE j.state = 'permanent_failure' AND j.id >= CAST(:from AS uuid)
                        LIMIT :walk + 1) AS counted) <= :walk AS complete,
                 coalesce(CAST(sum(open) AS bigint), 0) AS all_open,
                 coalesce(CAST(sum(retrying) AS bigint), 0) AS all_retrying
          FROM alike) AS t
         LEFT JOIN alike a ON true
    ORDER BY a.open DESC, a.retrying DESC, a.last_at DESC, a.id
    LIMIT :limit
    """
)


_OPEN = Statement(
    """
    SELECT count(*) FILTER (WHERE NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = f.id)) AS open,
           count(*) AS walked
    FROM (SELECT j.id
          FROM testigo.job j
          WHERE j.state = 'permanent_failure' AND j.id >= CAST(:from AS uuid)
          ORDER BY j.state, j.id
          LIMIT :walk + 1) AS f
    """
)


@single_statement
def open_failures(c: Connection, created_after: datetime) -> Count:
    """How many jobs have failed for good and have no successor, of those submitted since; as far as `causes` looks."""
    walk = LIMITS.causes_walk_rows
    (row,) = _OPEN.rows(c, **{"from": Filter(created_after=created_after).first_id(), "walk": walk})
    return Count(row.open, row.walked > walk)


@single_statement
def causes(
    c: Connection,
    *,
    queue: str | None = None,
    kind: str | None = None,
    created_after: datetime | None = None,
    limit: int = 50,
) -> Failures:
    """What has failed for good and was not done again with success, grouped by cause: at most `limit` causes.

    A failed job is open until something comes in its place, and retrying while that lives; it leaves when that
    has succeeded, or was cancelled. Where that failed too, it is the one that is open.
    Raises `Invalid` for a filter that cannot be.
    """
    check_limit(limit)
    wanted = Filter(queue=queue, kind=kind, created_after=created_after)
    bounds = {"from": wanted.first_id(), "walk": LIMITS.causes_walk_rows, "hops": LIMITS.page_max, "limit": limit}
    rows = _CAUSES.rows(c, queue=queue, kind=kind, **bounds)
    told, complete = rows[0], rows[0].complete
    found = tuple(_cause(row) for row in rows if row.id is not None)
    return Failures(found, Count(told.all_open, not complete), Count(told.all_retrying, not complete), complete)


def _cause(row: Row[Any]) -> Cause:
    return Cause(
        id=row.id,
        code=row.code,
        message=row.message or "",
        kinds=tuple(row.kinds),
        queues=tuple(row.queues),
        open=row.open,
        retrying=row.retrying,
        first_at=row.first_at,
        last_at=row.last_at,
        sample=JobId(row.sample),
    )
