"""promote: make claimable what has waited long enough (spec P-13).

Anybody may promote, any number at once: due jobs are taken in batches that nobody else holds. The
answer says when the next job falls due, so that a promoter sleeps until then.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.authority.edges import open_parents
from testigo.authority.jobs import lock
from testigo.authority.write import Change, write
from testigo.rules import decide, fields
from testigo.rules.decide import Inputs
from testigo.settings import LIMITS, STORE
from testigo.store.sql import Statement

__all__ = ["Promoted", "promote"]

_PICK = Statement(
    """
    SELECT CAST(id AS text) AS id
    FROM testigo.job
    WHERE queue = :queue AND state IN ('created', 'retry_waiting') AND due_at <= now()
    ORDER BY due_at, priority, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """
)

_NEXT = Statement(
    """
    SELECT greatest(0, extract(epoch FROM due_at - clock_timestamp())) AS seconds
    FROM testigo.job
    WHERE queue = :queue AND state IN ('created', 'retry_waiting') AND due_at IS NOT NULL
    ORDER BY due_at
    LIMIT 1
    """
)


class Promoted(NamedTuple):
    """How many jobs were promoted, and in how many seconds the next one of the queue falls due."""

    promoted: int
    next_seconds: float | None
    wakes: tuple[str, ...] = ()


def promote(c: Connection, queue: str, *, limit: int = STORE.sweep_rows) -> Promoted:
    """Promote at most `limit` due jobs of a queue."""
    fields.name(queue, field="queue")
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    jobs = lock(c, (row.id for row in _PICK.rows(c, queue=queue, limit=limit)))
    waiting_for = open_parents(c, jobs)
    changes = [Change(job, decide.promote(job.position, Inputs(waiting_for[job.id]))) for job in jobs.values()]
    write(c, changes, action=Action("system"))
    coming = _NEXT.row(c, queue=queue)
    return Promoted(len(changes), None if coming is None else float(coming.seconds), (queue,) if changes else ())
