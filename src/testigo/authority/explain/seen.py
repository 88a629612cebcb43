"""All that explains a job's standing, seen by one statement and so at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.jobs import position_of
from testigo.authority.read.missing import no_job
from testigo.rules.decide import Position, is_fit
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = ["SHOWN", "Seen", "see"]

SHOWN = 10
"""How many parents, or jobs ahead, are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A job and what stands around it; what does not concern a job in its state is not looked at.

    `unfit` is the word for why it must not be started any more. Of the parents that it waits for and of
    the jobs `ahead`, which are claimed before it, the first few are named. A parent that has ended and is
    still waited for can never succeed; of a job that is unadmitted, it only has not been judged yet.
    """

    id: JobId
    state: State
    now: datetime
    position: Position
    queue: str
    kind: str
    priority: int
    unadmitted: bool
    due_at: datetime | None
    reason: str | None
    error: Mapping[str, Any]
    limitations: tuple[str, ...]
    finished_at: datetime | None
    leased_at: datetime | None
    started_at: datetime | None
    timeout_seconds: float
    unfit: str | None
    successor: JobId | None
    session: Mapping[str, Any] | None
    open_parents: Sequence[Mapping[str, Any]]
    open_count: int
    ended_parents: Sequence[Mapping[str, Any]]
    pauses: Sequence[Mapping[str, Any]]
    serving: Mapping[str, int]
    ahead: Sequence[str]
    ahead_count: int
    needs: str | None


# Counts stop at their bound; each part is looked at only in the states that it concerns.
_SEE = Statement(
    """
    WITH job AS MATERIALIZED (
        SELECT j.*, a.job_id IS NOT NULL AS unadmitted, a.run_at, a.parents, a.policy,
               j.state IN ('ready', 'checkpointed') AS claimable,
               j.state IN ('created', 'inputs_pending', 'ready', 'checkpointed', 'retry_waiting',
                           'blocked_by_quality') AS waits
        FROM testigo.job j LEFT JOIN testigo.admission a ON a.job_id = j.id
        WHERE j.id = CAST(:job AS uuid)
    ),
    parent AS MATERIALIZED (
        SELECT w.id AS job, w.policy, coalesce(o.state, t.state) AS state, o.id IS NULL AS pruned,
               coalesce(o.state, t.state, 'cancelled')
                   IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded') AS ended
        FROM (SELECT e.parent AS id, e.policy
              FROM job j JOIN testigo.edge e ON e.child = j.id AND e.closed IS NULL
              WHERE j.waits
              UNION ALL
              SELECT DISTINCT p.id, j.policy
              FROM job j CROSS JOIN unnest(j.parents) AS p(id)) AS w
             LEFT JOIN testigo.job o ON o.id = w.id
             LEFT JOIN testigo.tombstone t ON t.job_id = w.id AND t.what = 'pruned'
    ),
    serving AS (
        SELECT count(*) FILTER (WHERE j.queue = ANY (p.queues)) AS queue,
               count(*) FILTER (WHERE j.kind = ANY (p.kinds)) AS kind,
               count(*) FILTER (WHERE j.queue = ANY (p.queues) AND j.kind = ANY (p.kinds)) AS both
        FROM job j
             JOIN testigo.session s ON j.waits AND s.state = 'open'
             JOIN testigo.session_profile p ON p.session_id = s.id
    )
    SELECT CAST(j.id AS text) AS id, CAST(j.state AS text) AS state, now() AS now, j.queue, j.kind, j.priority,
           j.failures, j.losses, j.attempts, j.crash_limit, j.waited_seconds, j.cost, j.contract, j.start_by,
           j.finish_by, j.epoch, j.checkpoint IS NOT NULL AS has_checkpoint, j.unadmitted,
           coalesce(j.due_at, j.run_at) AS due_at, j.reason, CAST(j.error AS json) AS error, j.limitations,
           j.finished_at, j.leased_at, j.started_at, j.timeout_seconds,
           (SELECT CAST(n.successor_id AS text) FROM testigo.successor n WHERE n.job_id = j.id) AS successor,
           (SELECT json_build_object('session', s.id, 'agent', s.agent, 'session_epoch', s.epoch,
                                     'session_state', s.state, 'beat', s.beat, 'term_seconds', s.term_seconds)
            FROM testigo.session s
            WHERE s.id = j.session_id) AS session,
           (SELECT json_agg(shown) FROM (SELECT * FROM parent WHERE NOT ended ORDER BY job LIMIT :shown) AS shown)
               AS open_parents,
           (SELECT count(*) FROM parent WHERE NOT ended) AS open_count,
           (SELECT json_agg(shown) FROM (SELECT * FROM parent WHERE ended ORDER BY job LIMIT :shown) AS shown)
               AS ended_parents,
           (SELECT json_agg(p ORDER BY p.scope DESC)
            FROM testigo.pause p
            WHERE j.waits AND ((p.scope = 'queue' AND p.name = j.queue) OR (p.scope = 'kind' AND p.name = j.kind)))
               AS pauses,
           (SELECT row_to_json(serving) FROM serving) AS serving,
           (SELECT json_agg(shown.id)
            FROM (SELECT o.id
                  FROM testigo.job o
                  WHERE j.claimable AND o.queue = j.queue AND o.state IN ('ready', 'checkpointed')
                    AND (o.priority, o.ready_at, o.id) < (j.priority, j.ready_at, j.id)
                  ORDER BY o.priority, o.ready_at, o.id
                  LIMIT :shown) AS shown) AS ahead,
           (SELECT count(*)
            FROM (SELECT
                  FROM testigo.job o
                  WHERE j.claimable AND o.queue = j.queue AND o.state IN ('ready', 'checkpointed')
                    AND (o.priority, o.ready_at, o.id) < (j.priority, j.ready_at, j.id)
                  ORDER BY o.priority, o.ready_at, o.id
                  LIMIT :count_max + 1) AS counted) AS ahead_count,
           (SELECT CAST(e.data AS json) ->> 'needs'
            FROM testigo.event e
            WHERE j.state = 'blocked_by_quality' AND e.subject = j.id AND e.type = 'job.blocked'
            ORDER BY e.revision DESC
            LIMIT 1) AS needs
    FROM job j
    """
)


def see(c: Connection, job_id: JobId) -> Seen:
    """Look at a job; raises `NotFound`, with the tombstone of one that was pruned."""
    row = _SEE.row(c, job=job_id, shown=SHOWN, count_max=LIMITS.count_max)
    if row is None:
        raise no_job(c, job_id)
    position = position_of(row)
    return Seen(
        id=JobId(row.id),
        state=position.state,
        now=row.now,
        position=position,
        queue=row.queue,
        kind=row.kind,
        priority=row.priority,
        unadmitted=row.unadmitted,
        due_at=row.due_at,
        reason=row.reason,
        error=row.error or {},
        limitations=tuple(row.limitations or ()),
        finished_at=row.finished_at,
        leased_at=row.leased_at,
        started_at=row.started_at,
        timeout_seconds=row.timeout_seconds,
        unfit=is_fit(position, now=row.now),
        successor=None if row.successor is None else JobId(row.successor),
        session=row.session,
        open_parents=row.open_parents or (),
        open_count=row.open_count,
        ended_parents=row.ended_parents or (),
        pauses=row.pauses or (),
        serving=row.serving,
        ahead=row.ahead or (),
        ahead_count=row.ahead_count,
        needs=row.needs,
    )
