"""The jobs of an analysis as they are now: of one that was reprocessed, its last successor (spec A-06, D-21)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.edges import successors
from testigo.errors import NotFound, WrongPublisher
from testigo.evidence.model import AnalysisId
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.states import State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["LeftBy", "check_publisher", "ended_so", "left_by_parts", "must_publish", "open_jobs"]

_NOTHING = (None, "null")

_PUBLISHER = Statement(
    "SELECT CAST(publish_job AS text) AS job FROM testigo.analysis WHERE id = CAST(:analysis AS uuid)"
)

# A job that was pruned is judged by its tombstone.
_LEFT = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT n, job_id AS head
        FROM testigo.part
        WHERE analysis_id = CAST(:analysis AS uuid)
        UNION ALL
        SELECT chain.n, s.successor_id
        FROM chain JOIN testigo.successor s ON s.job_id = chain.head
    )
    SELECT c.n, CAST(c.head AS text) AS job, CAST(coalesce(j.state, t.state, 'cancelled') AS text) AS state,
           j.id IS NULL AS pruned, j.output, j.limitations, j.error, j.reason
    FROM chain c
         LEFT JOIN LATERAL (SELECT * FROM testigo.job j WHERE j.id = c.head OFFSET 0) AS j ON true
         LEFT JOIN LATERAL (
             SELECT t.state FROM testigo.tombstone t WHERE t.job_id = c.head AND t.what = 'pruned' OFFSET 0
         ) AS t ON true
    WHERE NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = c.head)
    ORDER BY c.n
    """
)

_OPEN_JOBS = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT job_id AS head
        FROM testigo.part
        WHERE analysis_id = CAST(:analysis AS uuid)
        UNION ALL
        SELECT publish_job
        FROM testigo.analysis
        WHERE id = CAST(:analysis AS uuid)
        UNION ALL
        SELECT s.successor_id
        FROM chain JOIN testigo.successor s ON s.job_id = chain.head
    )
    SELECT CAST(j.id AS text) AS id
    FROM chain c
         CROSS JOIN LATERAL (SELECT j.id, j.state FROM testigo.job j WHERE j.id = c.head OFFSET 0) AS j
    WHERE j.state NOT IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
    ORDER BY j.id
    """
)


class LeftBy(NamedTuple):
    """What the job of one part left: `why` is empty where it points to a result, and else says why there is none."""

    n: int
    job_id: JobId
    why: str


@single_statement
def left_by_parts(c: Connection, analysis_id: AnalysisId) -> tuple[LeftBy, ...]:
    """What the jobs of all parts left, in the order of the parts."""
    fields.must_be_id(analysis_id, field="analysis")
    return tuple(LeftBy(row.n, JobId(row.job), _why(row)) for row in _LEFT.rows(c, analysis=analysis_id))


def open_jobs(c: Connection, analysis_id: AnalysisId) -> list[JobId]:
    """Those of its jobs that have not ended, by id."""
    return [JobId(row.id) for row in _OPEN_JOBS.rows(c, analysis=analysis_id)]


def check_publisher(c: Connection, analysis_id: AnalysisId, job_id: JobId) -> None:
    """Refuse a job that is not the one which publishes this analysis: `WrongPublisher`; `NotFound` without one."""
    fields.must_be_id(analysis_id, field="analysis")
    row = _PUBLISHER.row(c, analysis=analysis_id)
    if row is None:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    must_publish(c, analysis_id, JobId(row.job), job_id)


def must_publish(c: Connection, analysis_id: AnalysisId, publish_job: JobId, job_id: JobId) -> None:
    """The same, for an analysis that is known to be published by `publish_job` or its last successor."""
    if job_id != successors(c, [publish_job]).get(publish_job, publish_job):
        raise WrongPublisher(
            f"The analysis {analysis_id} is not published by the job {job_id}.", field="analysis", job=publish_job
        )


def _why(row: Row[Any]) -> str:
    if row.pruned:
        return f"its job was {row.state}, and is not kept any more"
    if State(row.state) in (State.SUCCEEDED, State.SUCCEEDED_DEGRADED):
        if row.output not in _NOTHING:
            return ""
        return discreet("; ".join(row.limitations or ())) or "its job left no result"
    return ended_so(row)


def ended_so(row: Row[Any]) -> str:
    """How a job ended, by its `state`, its `reason` and its `error`, without secrets."""
    error = {} if row.error is None else json.loads(row.error)
    told = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name)) or row.reason
    return discreet(f"its job is {row.state}" + (f" ({told})" if told else ""))
