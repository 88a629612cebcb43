"""report: what runs tell of themselves while they run, how far they are and what they log (spec B-12).

It is for people: nothing hangs on it, and it changes no job. So it needs no receipt. What a run tells is
numbered by its holder, and what was kept before is passed over when it comes again. One statement keeps
the reports of many runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionId
from testigo.authority.start import Held
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.text import tidy
from testigo.settings import LIMITS, WORKER
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["LogLine", "Progress", "report"]

_LEVEL_BYTES_MAX = 32


class Progress(NamedTuple):
    """How far a run has come: `done` of `total`, in a unit of its own, at `at` by its holder's clock.

    `n` numbers what one run tells of its progress, from 1; of several only the last counts.
    """

    held: Held
    n: int
    at: datetime
    done: float
    total: float | None = None
    note: str = ""


class LogLine(NamedTuple):
    """One line of a run's log; `n` numbers them from 1, and each comes with a number above those before."""

    held: Held
    n: int
    at: datetime
    level: str
    text: str


# The job's row is locked against nothing but its removal and its redaction, both of which lock it whole:
# no line comes after them. What this run told before is read under its row's lock, in its newest version.
# Once a line was dropped all later ones are, so that what is kept has no hole.
_REPORT = Statement(
    """
    WITH held AS MATERIALIZED (
        SELECT j.id, j.epoch
        FROM testigo.session s,
             (SELECT *, CAST(:session AS uuid) AS session_id
              FROM unnest(CAST(:ids AS uuid[]), CAST(:leases AS uuid[]), CAST(:epochs AS integer[]))
                       AS i(id, lease_id, epoch)) AS h
             JOIN testigo.job j
                 ON j.id = ANY (ARRAY[h.id]) AND j.lease_id IS NOT DISTINCT FROM h.lease_id
                    AND j.epoch IS NOT DISTINCT FROM h.epoch
                    AND j.session_id IS NOT DISTINCT FROM h.session_id
        WHERE s.id = CAST(:session AS uuid) AND s.state IN ('open', 'draining')
        ORDER BY j.id
        FOR KEY SHARE OF j
    ),
    before AS MATERIALIZED (
        SELECT p.*
        FROM testigo.progress p JOIN held h ON p.job_id = h.id AND p.epoch = h.epoch
        ORDER BY p.job_id
        FOR UPDATE OF p
    ),
    line AS MATERIALIZED (
        SELECT l.*, octet_length(l.text) AS bytes,
               coalesce(b.log_dropped, 0) = 0
                   AND coalesce(b.log_lines, 0) + row_number() OVER run <= :lines_max
                   AND coalesce(b.log_bytes, 0) + sum(octet_length(l.text)) OVER run <= :bytes_max AS fits
        FROM unnest(CAST(:line_ids AS uuid[]), CAST(:line_epochs AS integer[]), CAST(:line_ns AS bigint[]),
                    CAST(:line_ats AS timestamptz[]), CAST(:levels AS text[]), CAST(:texts AS text[]))
                 AS l(id, epoch, n, at, level, text)
             JOIN held h ON h.id = l.id AND h.epoch = l.epoch
             LEFT JOIN before b ON b.job_id = l.id
        WHERE l.n > coalesce(b.log_n, 0)
        WINDOW run AS (PARTITION BY l.id ORDER BY l.n)
    ),
    kept AS (
        INSERT INTO testigo.job_log (job_id, epoch, n, at, level, text)
        SELECT id, epoch, n, at, level, text FROM line WHERE fits
        ON CONFLICT DO NOTHING
    ),
    logged AS (
        SELECT id, max(n) AS n, count(*) FILTER (WHERE fits) AS lines, sum(bytes) FILTER (WHERE fits) AS bytes,
               count(*) FILTER (WHERE NOT fits) AS dropped
        FROM line
        GROUP BY id
    ),
    come AS (
        SELECT g.*
        FROM unnest(CAST(:progress_ids AS uuid[]), CAST(:progress_epochs AS integer[]), CAST(:ns AS bigint[]),
                    CAST(:ats AS timestamptz[]), CAST(:dones AS double precision[]),
                    CAST(:totals AS double precision[]), CAST(:notes AS text[]))
                 AS g(id, epoch, n, at, done, total, note)
    ),
    told AS (
        INSERT INTO testigo.progress AS p (
            job_id, epoch, n, at, done, total, note, first_at, first_done, log_n, log_lines, log_bytes, log_dropped
        )
        SELECT h.id, h.epoch, coalesce(g.n, b.n, 0), coalesce(g.at, b.at), coalesce(g.done, b.done),
               CASE WHEN g.n IS NULL THEN b.total ELSE g.total END, coalesce(g.note, b.note),
               coalesce(b.first_at, g.at), coalesce(b.first_done, g.done), coalesce(l.n, b.log_n, 0),
               coalesce(b.log_lines, 0) + coalesce(l.lines, 0), coalesce(b.log_bytes, 0) + coalesce(l.bytes, 0),
               coalesce(b.log_dropped, 0) + coalesce(l.dropped, 0)
        FROM held h
             LEFT JOIN before b ON b.job_id = h.id
             LEFT JOIN come g ON g.id = h.id AND g.epoch = h.epoch AND g.n > coalesce(b.n, 0)
             LEFT JOIN logged l ON l.id = h.id
        WHERE g.n IS NOT NULL OR l.n IS NOT NULL
        ORDER BY h.id
        ON CONFLICT (job_id) DO UPDATE
            SET (epoch, n, at, done, total, note, first_at, first_done, log_n, log_lines, log_bytes, log_dropped)
                = (excluded.epoch, excluded.n, excluded.at, excluded.done, excluded.total, excluded.note,
                   excluded.first_at, excluded.first_done, excluded.log_n, excluded.log_lines, excluded.log_bytes,
                   excluded.log_dropped)
            WHERE p.epoch <= excluded.epoch
        RETURNING 1
    )
    SELECT CAST(held.id AS text) AS id
    FROM held, (SELECT count(*) FROM told) AS done
    """
)


@single_statement
def report(
    c: Connection, session_id: SessionId, progress: Sequence[Progress] = (), lines: Sequence[LogLine] = ()
) -> tuple[JobId, ...]:
    """Keep what these runs tell, as far as this session holds them; returns the jobs that it holds.

    What is not held is passed over. Of one run at most `WORKER.log_lines_max` lines and
    `WORKER.log_bytes_max` bytes are kept, and the later ones counted; notes and lines are cut to their
    bounds. A holder sends one report at a time. Raises `Invalid` for what is no number, moment or lease,
    and for two progresses, or two lines of one number, of one run.
    """
    fields.must_be_id(session_id, field="session")
    _check(progress, lines)
    runs = sorted({told.held for told in progress} | {line.held for line in lines})
    if not runs:
        return ()
    parameters = {
        "session": session_id,
        "ids": [run.job_id for run in runs],
        "leases": [run.lease_id for run in runs],
        "epochs": [run.epoch for run in runs],
        "progress_ids": [told.held.job_id for told in progress],
        "progress_epochs": [told.held.epoch for told in progress],
        "ns": [told.n for told in progress],
        "ats": [told.at for told in progress],
        "dones": [told.done for told in progress],
        "totals": [told.total for told in progress],
        "notes": [tidy(told.note, bytes_max=LIMITS.note_bytes_max) for told in progress],
        "line_ids": [line.held.job_id for line in lines],
        "line_epochs": [line.held.epoch for line in lines],
        "line_ns": [line.n for line in lines],
        "line_ats": [line.at for line in lines],
        "levels": [tidy(line.level, bytes_max=_LEVEL_BYTES_MAX) for line in lines],
        "texts": [tidy(line.text, bytes_max=WORKER.log_line_bytes_max) for line in lines],
        "lines_max": WORKER.log_lines_max,
        "bytes_max": WORKER.log_bytes_max,
    }
    return tuple(JobId(row.id) for row in _REPORT.rows(c, **parameters))


def _check(progress: Sequence[Progress], lines: Sequence[LogLine]) -> None:
    for name, told in (("progress", progress), ("lines", lines)):
        fields.sequence(told, field=name, most=LIMITS.batch_max)
        _check_each(told, name)
    for at, made in enumerate(progress):
        fields.amount(made.done, field=f"progress[{at}].done")
        if made.total is not None:
            fields.amount(made.total, field=f"progress[{at}].total")
    if len({made.held for made in progress}) < len(progress):
        raise Invalid("A run tells of its progress twice.", field="progress", remedy="Send only the last of a run.")
    if len({(line.held, line.n) for line in lines}) < len(lines):
        raise Invalid("Two lines of a run have one number.", field="lines", remedy="Number the lines of a run.")


def _check_each(told: Iterable[Progress | LogLine], name: str) -> None:
    for at, one in enumerate(told):
        fields.fence(*one.held, field=f"{name}[{at}].held")
        fields.whole(one.n, field=f"{name}[{at}].n", low=1, high=fields.BIGINT_MAX)
        fields.moment(one.at, field=f"{name}[{at}].at")
