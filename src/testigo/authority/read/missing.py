"""The refusal of a job that is not there, alike for every read."""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.errors import NotFound
from testigo.store.sql import Statement

__all__ = ["no_job"]

_PRUNED = Statement(
    """
    SELECT CAST(id AS text) AS id, CAST(state AS text) AS state, at
    FROM testigo.tombstone
    WHERE job_id = CAST(:job AS uuid) AND what = 'pruned'
    """
)


def no_job(c: Connection, job_id: str) -> NotFound:
    """The refusal of an id that names no job, or one that was pruned."""
    tombstone = _PRUNED.row(c, job=job_id)
    if tombstone is None:
        return NotFound(f"There is no job {job_id}.", field="job")
    return NotFound(
        f"The job {job_id} ended as {tombstone.state} and was pruned.",
        field="job",
        remedy="What is left of it is its tombstone, and its events as long as its stream keeps them.",
        tombstone=tombstone.id,
        state=tombstone.state,
        at=tombstone.at,
    )
