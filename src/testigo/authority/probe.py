"""probe: what a sweep would find to do, in one look that locks nothing (spec P-11, P-13)."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Findings", "probe"]


class Findings(NamedTuple):
    """What there is to do: `admit`, `retire_lapsed`, and `promote` in these queues.

    `next_due_seconds` is when the next job of any queue falls due; None if none waits for its time.
    """

    admits: bool
    lapses: bool
    due: tuple[str, ...]
    next_due_seconds: float | None


# From queue to queue by the index of what waits for its time: the first entry of each is its next.
_PROBE = Statement(
    """
    WITH RECURSIVE waiting AS (
        (SELECT queue, due_at
         FROM testigo.job
         WHERE state IN ('created', 'retry_waiting') AND due_at IS NOT NULL
         ORDER BY queue, due_at
         LIMIT 1)
        UNION ALL
        SELECT next.queue, next.due_at
        FROM waiting w
             CROSS JOIN LATERAL (
                 SELECT j.queue, j.due_at
                 FROM testigo.job j
                 WHERE j.queue > w.queue AND j.state IN ('created', 'retry_waiting') AND j.due_at IS NOT NULL
                 ORDER BY j.queue, j.due_at
                 LIMIT 1
             ) AS next
    )
    SELECT EXISTS (SELECT FROM testigo.admission) AS admits,
           EXISTS (SELECT FROM testigo.lapse WHERE at < now()) AS lapses,
           (SELECT array_agg(queue)
            FROM (SELECT queue FROM waiting WHERE due_at <= now() ORDER BY due_at LIMIT :limit) AS longest) AS due,
           (SELECT extract(epoch FROM min(due_at) - clock_timestamp()) FROM waiting WHERE due_at > now())
               AS next_seconds
    """
)


@single_statement
def probe(c: Connection) -> Findings:
    """Look what a sweep would find; of more than `LIMITS.page_max` queues with due jobs, those that wait longest."""
    (row,) = _PROBE.rows(c, limit=LIMITS.page_max)
    seconds = None if row.next_seconds is None else max(0.0, float(row.next_seconds))
    return Findings(row.admits, row.lapses, tuple(row.due or ()), seconds)
