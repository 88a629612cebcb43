"""What the runs of a job tell of themselves: how far the last one is, and their log (spec B-12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read.missing import no_job
from testigo.authority.read.pages import check_limit
from testigo.rules import fields
from testigo.rules.progress import Mark, eta_seconds
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["LogLineView", "LogPage", "LogPlace", "ProgressView", "log", "progress", "progress_of"]


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far the last run that told of it has come: `done` of `total`, in the run's own unit.

    `epoch` names the run, which may be over; `at` is when it told, by its holder's clock. `eta_seconds` is
    how long it would take from then on if it goes on as it did since it told first; None where that is not
    known. `first` is what it told first.
    """

    epoch: int
    done: float
    total: float | None
    note: str
    at: datetime
    first: Mark

    @property
    def eta_seconds(self) -> float | None:
        """How many seconds after `at` the run will be done, as far as its own word goes."""
        return eta_seconds(self.first, Mark(self.done, self.at), self.total)


class LogPlace(NamedTuple):
    """A place in a job's log: the line `n` of the run `epoch`."""

    epoch: int = 0
    n: int = 0


class LogLineView(NamedTuple):
    """One line of a run's log, as its handler wrote it; `at` is by its holder's clock."""

    place: LogPlace
    at: datetime
    level: str
    text: str


class LogPage(NamedTuple):
    """Some lines of a job's log, in their order, and the place from which to go on, at the end as well.

    `more` says that there are further lines now. `dropped` counts the lines of the last run that were not
    kept, because it logged more than is kept of one.
    """

    lines: tuple[LogLineView, ...]
    place: LogPlace
    more: bool
    dropped: int


_PROGRESS = Statement(
    """
    SELECT p.epoch AS run, p.done, p.total, p.note, p.at, p.first_done, p.first_at
    FROM testigo.job j LEFT JOIN testigo.progress p ON p.job_id = j.id
    WHERE j.id = CAST(:job AS uuid)
    """
)

_LOG = Statement(
    """
    SELECT l.epoch, l.n, l.at, l.level, l.text, coalesce(p.log_dropped, 0) AS dropped
    FROM (SELECT CAST(:job AS uuid) AS id) AS j
         LEFT JOIN testigo.progress p ON p.job_id = j.id
         LEFT JOIN LATERAL (
             SELECT l.*
             FROM testigo.job_log l
             WHERE l.job_id = j.id AND (l.epoch, l.n) > (CAST(:epoch AS integer), CAST(:n AS bigint))
             ORDER BY l.epoch, l.n
             LIMIT :limit + 1
         ) AS l ON true
    ORDER BY l.epoch, l.n
    """
)


@single_statement
def progress(c: Connection, job_id: JobId) -> ProgressView | None:
    """How far the job has come; None if no run of it has told. Raises `NotFound` as `read.job` does."""
    fields.must_be_id(job_id, field="job")
    row = _PROGRESS.row(c, job=job_id)
    if row is None:
        raise no_job(c, job_id)
    return progress_of(row)


@single_statement
def log(c: Connection, job_id: JobId, *, after: LogPlace | None = None, limit: int = 100) -> LogPage:
    """The lines that the runs of a job logged, in their order; a job without any has an empty page.

    Who asks again from the place of the last page sees what was logged since.
    """
    fields.must_be_id(job_id, field="job")
    check_limit(limit)
    start = LogPlace() if after is None else after
    fields.whole(start.epoch, field="after.epoch", low=0, high=fields.INTEGER_MAX)
    fields.whole(start.n, field="after.n", low=0, high=fields.BIGINT_MAX)
    rows = _LOG.rows(c, job=job_id, epoch=start.epoch, n=start.n, limit=limit)
    found = [LogLineView(LogPlace(row.epoch, row.n), row.at, row.level, row.text) for row in rows if row.n is not None]
    lines = tuple(found[:limit])
    return LogPage(lines, lines[-1].place if lines else start, len(found) > limit, rows[0].dropped)


def progress_of(row: Row[Any]) -> ProgressView | None:
    """The progress in a row that has its columns; None where they are empty, or only a log was told."""
    if row.done is None:
        return None
    return ProgressView(row.run, row.done, row.total, row.note, row.at, Mark(row.first_done, row.first_at))
