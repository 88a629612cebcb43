"""How a job stands for somebody who waits for its end: one narrow look, repeated (spec D-01)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.read.missing import no_job
from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.rules.states import TERMINAL, State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["JobEnd", "end"]


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The state of a job and, once it has ended, what is left to tell: nothing of it changes again.

    `reason` is the stable word for why it ended; `error` tells of the last failure by `code` and
    `message`; `successor` is the job that took its place.
    """

    state: State
    reason: str | None
    output: Document | None
    limitations: tuple[str, ...]
    error: Mapping[str, Any] | None
    successor: JobId | None

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in TERMINAL


# What is wide is read once, when the job has ended: an output may have 256 KiB, and is looked for often.
_END = Statement(
    """
    SELECT CAST(j.state AS text) AS state, j.reason, j.limitations,
           CASE WHEN j.finished_at IS NOT NULL THEN j.output END AS output,
           CASE WHEN j.finished_at IS NOT NULL THEN j.error END AS error,
           CASE WHEN j.finished_at IS NOT NULL
                THEN (SELECT CAST(n.successor_id AS text) FROM testigo.successor n WHERE n.job_id = j.id)
                END AS successor
    FROM testigo.job j
    WHERE j.id = CAST(:job AS uuid)
    """
)


@single_statement
def end(c: Connection, job_id: JobId) -> JobEnd:
    """How the job stands, and how it ended if it has. Locks nothing.

    Raises `NotFound`; of a job that was pruned it names the tombstone and the state in which it ended.
    """
    fields.must_be_id(job_id, field="job")
    row = _END.row(c, job=job_id)
    if row is None:
        raise no_job(c, job_id)
    return JobEnd(
        state=State(row.state),
        reason=row.reason,
        output=None if row.output is None else Document(row.output),
        limitations=tuple(row.limitations or ()),
        error=None if row.error is None else json.loads(row.error),
        successor=None if row.successor is None else JobId(row.successor),
    )
