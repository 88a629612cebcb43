"""end_abandoned: an analysis that nobody will publish any more ends, whatever became of its job (spec D-21).

Its job may have failed, been cancelled, been lost once too often, or have ended past its date. None of those who
end a job knows of analyses, so whoever sweeps looks for those that run without one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.edges import successors
from testigo.errors import NotFound
from testigo.evidence.analyses import end_within
from testigo.evidence.collection import lock
from testigo.evidence.following import ended_so
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules import fields
from testigo.rules.states import State
from testigo.store.command import savepoint
from testigo.store.sql import Statement

__all__ = ["Abandoned", "end_abandoned"]

_FIND = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT a.id, a.publish_job AS head
        FROM testigo.analysis a
        WHERE a.state = 'running' AND (CAST(:only AS uuid) IS NULL OR a.id = CAST(:only AS uuid))
        UNION ALL
        SELECT chain.id, s.successor_id
        FROM chain JOIN testigo.successor s ON s.job_id = chain.head
    )
    SELECT CAST(c.id AS text) AS id, CAST(c.head AS text) AS head, j.id IS NULL AS pruned,
           CAST(coalesce(j.state, t.state, 'cancelled') AS text) AS state, j.error, j.reason
    FROM chain c
         LEFT JOIN LATERAL (SELECT * FROM testigo.job j WHERE j.id = c.head OFFSET 0) AS j ON true
         LEFT JOIN LATERAL (
             SELECT t.state FROM testigo.tombstone t WHERE t.job_id = c.head AND t.what = 'pruned' OFFSET 0
         ) AS t ON true
    WHERE NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = c.head)
      AND coalesce(j.state, t.state, 'cancelled')
          IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
    ORDER BY c.id
    LIMIT 1
    """
)


class Abandoned(NamedTuple):
    """The analysis that was ended, None where there was none; `wakes` are the sessions that hold what is to stop."""

    analysis_id: AnalysisId | None
    wakes: tuple[str, ...] = ()


def end_abandoned(c: Connection, *, only: AnalysisId | None = None) -> Abandoned:
    """End one running analysis whose job to publish it has ended, `only` this one if that is asked.

    It ends `cancelled` if that job is, and else `failed`, with the reason; those of its jobs that still run are
    cancelled, for nobody would publish what they find. One whose job is reprocessed meanwhile is left alone: either
    that is first, and it goes on, or it has ended before the new job is there.
    """
    if only is not None:
        fields.must_be_id(only, field="only")
    row = _FIND.row(c, only=only)
    if row is None:
        return Abandoned(None)
    locked = lock(c, AnalysisId(row.id))
    if locked.state is not AnalysisState.RUNNING:  # somebody else ended it before this had its lock
        return Abandoned(None)
    reason = f"Nothing was published, for {ended_so(row)}."
    state = AnalysisState.CANCELLED if State(row.state) is State.CANCELLED else AnalysisState.FAILED
    job = JobId(row.head)
    # The job is held from where its others are cancelled, all in one order: only then is it known whether it goes on.
    with suppress(_GoesOnError, NotFound), savepoint(c):  # NotFound: it was pruned meanwhile
        wakes = end_within(c, locked, state, reason, Action("system"), stops=True, holds=[] if row.pruned else [job])
        if successors(c, [job]):
            raise _GoesOnError
        return Abandoned(locked.id, wakes)
    return Abandoned(None)


class _GoesOnError(Exception):
    """Somebody reprocessed the job: what was done since the savepoint is undone."""
