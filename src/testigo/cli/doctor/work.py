"""Checks of the work itself: jobs that nobody serves, promotes, admits or takes back, and workers that went silent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from sqlalchemy import Connection

from testigo.authority.read.pages import counted as bounded
from testigo.cli.doctor.findings import Finding, Level, counted
from testigo.settings import LIMITS, SESSIONS
from testigo.store.sql import Statement

__all__ = ["abandoned", "beats", "overdue", "unadmitted", "unserved"]

LATE_SECONDS = 15.0
"""What a sweep does within a poll or two, and nobody has done for so long, nobody does."""
LOOK_SECONDS = 0.25
SHOWN = 10
LOOKED_AT = 1_000
"""Jobs of each queue that are asked who serves them."""

# The queues that have claimable jobs are found by leaps along their index; of each, the first jobs are looked at.
_UNSERVED = Statement(
    """
    WITH RECURSIVE waiting AS (
        (SELECT queue FROM testigo.job WHERE state IN ('ready', 'checkpointed') ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue
                FROM testigo.job j
                WHERE j.state IN ('ready', 'checkpointed') AND j.queue > w.queue
                ORDER BY j.queue
                LIMIT 1)
        FROM waiting w
        WHERE w.queue IS NOT NULL
    ),
    found AS MATERIALIZED (
        SELECT w.queue, j.kind, count(*) AS n
        FROM waiting w
             CROSS JOIN LATERAL (SELECT j.kind
                                 FROM testigo.job j
                                 WHERE j.queue = w.queue AND j.state IN ('ready', 'checkpointed')
                                 LIMIT :looked_at) AS j
        GROUP BY w.queue, j.kind
    )
    SELECT f.queue, f.kind, f.n
    FROM found f
    WHERE NOT EXISTS (
        SELECT
        FROM testigo.session s JOIN testigo.session_profile p ON p.session_id = s.id
        WHERE s.state = 'open' AND f.queue = ANY (p.queues) AND f.kind = ANY (p.kinds)
    )
    ORDER BY f.n DESC, f.queue, f.kind
    LIMIT :shown
    """
)

_BEATS = Statement(
    """
    SELECT CAST(id AS text) AS id, agent, beat, term_seconds
    FROM testigo.session
    WHERE state IN ('open', 'draining')
    """
)

_OVERDUE = Statement(
    """
    SELECT count(*) AS n
    FROM (SELECT
          FROM testigo.job
          WHERE state IN ('created', 'retry_waiting')
            AND due_at < now() - CAST(:seconds AS double precision) * interval '1 second'
          LIMIT :count_max + 1) AS late
    """
)

_UNADMITTED = Statement(
    """
    SELECT count(*) AS n
    FROM (SELECT
          FROM testigo.admission a JOIN testigo.job j ON j.id = a.job_id
          WHERE j.created_at < now() - CAST(:seconds AS double precision) * interval '1 second'
          LIMIT :count_max + 1) AS late
    """
)

_ABANDONED = Statement(
    """
    SELECT count(*) AS n
    FROM (SELECT
          FROM testigo.job j JOIN testigo.session_profile p ON p.session_id = j.session_id
          WHERE j.lease_id IS NOT NULL
            AND p.closed_at < now() - CAST(:seconds AS double precision) * interval '1 second'
          LIMIT :count_max + 1) AS held
    """
)

_START = "Start a worker: `testigo worker module:app`."


def unserved(c: Connection) -> Iterator[Finding]:
    """Jobs that could run now, of a kind that no worker takes from their queue."""
    for row in _UNSERVED.rows(c, looked_at=LOOKED_AT, shown=SHOWN):
        jobs = ("At least " if row.n == LOOKED_AT else "") + counted(row.n, "job", "jobs")
        yield Finding(
            "UNSERVED",
            Level.WARNING,
            f"{jobs} of the kind {row.kind!r} in the queue {row.queue!r} could run, and no worker takes them.",
            "They wait until one does.",
            "Start a worker whose App has that kind and which serves that queue; or cancel them: "
            f"`testigo jobs cancel --queue {row.queue} --kind {row.kind}`.",
            {"queue": row.queue, "kind": row.kind, "jobs": row.n},
        )


def beats(c: Connection) -> Iterator[Finding]:
    """Workers whose beat does not change while it is watched, for as long as they may stay silent."""
    first = _beats(c)
    began = time.monotonic()
    silent = dict(first)
    while silent and time.monotonic() - began < _patience(silent):
        time.sleep(LOOK_SECONDS)
        now = _beats(c)
        silent = {each: seen for each, seen in silent.items() if each in now and now[each][1] == seen[1]}
    for session, (agent, _, term) in silent.items():
        yield Finding(
            "SILENT_WORKER",
            Level.WARNING,
            f"The worker {agent!r} has not beaten for {_patience(silent):.0f} s.",
            "It is gone, stopped or cut off; another worker takes its jobs back once its term has passed. Without "
            "another, nobody does.",
            f"See whether it runs. {_START}",
            {"session": session, "agent": agent, "term_seconds": term},
        )


def overdue(c: Connection) -> Iterator[Finding]:
    """Jobs whose time has come, and which nobody made ready."""
    yield from _late(
        c,
        _OVERDUE,
        "NOT_PROMOTED",
        "{jobs} waited for a time that has passed, and nobody makes them ready.",
        "Workers promote what is due, in the queues that they serve.",
    )


def unadmitted(c: Connection) -> Iterator[Finding]:
    """Jobs that were submitted in a transaction of the caller's own, and that nobody admitted."""
    yield from _late(
        c,
        _UNADMITTED,
        "NOT_ADMITTED",
        "{jobs} were submitted inside transactions and are not admitted yet.",
        "Workers admit such jobs within a poll; until then they do not run and no event tells of them.",
    )


def abandoned(c: Connection) -> Iterator[Finding]:
    """Jobs whose holder's session is over, and which nobody took back."""
    yield from _late(
        c,
        _ABANDONED,
        "NOT_TAKEN_BACK",
        "{jobs} are held by sessions that are over, and nobody takes them back.",
        "Workers take back what others have left; until then these jobs do not run.",
    )


def _late(c: Connection, statement: Statement, code: str, what: str, why: str) -> Iterator[Finding]:
    (row,) = statement.rows(c, seconds=LATE_SECONDS, count_max=LIMITS.count_max)
    if row.n:
        jobs = f"{bounded(row.n)} {'job' if row.n == 1 else 'jobs'}"
        told = what.format(jobs=jobs)
        yield Finding(code, Level.WARNING, told, why, _START, {"jobs": min(row.n, LIMITS.count_max)})


def _beats(c: Connection) -> Mapping[str, tuple[str, int, float]]:
    return {row.id: (row.agent, row.beat, row.term_seconds) for row in _BEATS.rows(c)}


def _patience(silent: Mapping[str, tuple[str, int, float]]) -> float:
    """How long the most patient of these may stay silent before it has to stop itself."""
    return SESSIONS.stop_after_terms * max(term for _, _, term in silent.values())
