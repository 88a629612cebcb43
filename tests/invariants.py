"""What must be true of an installation at every moment, whatever ran before, read from its database alone.

Each invariant is one statement that returns the rows that break it, so each is judged in one snapshot:
`check` may be called while others work. The sentences are the promises; the rows say where one broke.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["INVARIANTS", "Invariant", "broken", "check"]


class Invariant(NamedTuple):
    """A sentence that holds always, and the statement that finds what breaks it."""

    promise: str
    breakers: Statement


_TERMINAL = "('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')"
_LEASED = "('leased', 'running', 'cancelling')"
_ENDS_A_RUN = """('job.completed', 'job.degraded', 'job.failed', 'job.blocked', 'job.lost', 'job.released',
                  'job.checkpointed', 'job.cancelled')"""
_ENDS_A_JOB = """(
    e.type IN ('job.completed', 'job.degraded', 'job.cancelled', 'job.superseded')
    OR e.type = 'job.failed' AND CAST(e.data AS json) ->> 'state' = 'permanent_failure'
)"""

INVARIANTS = (
    # streams (spec B-10, P-08; field case R89)
    Invariant(
        "a stream's events are numbered from its floor to its head, without a gap",
        Statement(
            """
            SELECT s.name, s.floor, s.head, count(e.sequence) AS events, min(e.sequence), max(e.sequence)
            FROM testigo.stream s LEFT JOIN testigo.event e ON e.stream = s.name
            GROUP BY s.name, s.floor, s.head
            HAVING count(e.sequence) <> s.head - s.floor
                OR min(e.sequence) <> s.floor + 1 OR max(e.sequence) <> s.head
            """
        ),
    ),
    Invariant(
        "an event belongs to a stream, its id is its own, and its time is not before its predecessor's",
        Statement(
            """
            SELECT stream, sequence, id
            FROM (SELECT e.stream, e.sequence, e.id, s.name,
                         e.at < lag(e.at) OVER (PARTITION BY e.stream ORDER BY e.sequence) AS back,
                         count(*) OVER (PARTITION BY e.id) AS same
                  FROM testigo.event e LEFT JOIN testigo.stream s ON s.name = e.stream) AS told
            WHERE name IS NULL OR back OR same > 1
            """
        ),
    ),
    # what the streams tell is what happened (spec, B-13)
    Invariant(
        "a job that is admitted was requested once, as the first that is told of it",
        Statement(
            """
            SELECT j.id, j.state, a.job_id IS NOT NULL AS unadmitted, e.requests, e.earliest
            FROM testigo.job j
                 LEFT JOIN testigo.admission a ON a.job_id = j.id
                 LEFT JOIN LATERAL (
                     SELECT count(*) AS events, count(*) FILTER (WHERE type = 'job.requested') AS requests,
                            (array_agg(type ORDER BY revision))[1] AS earliest
                     FROM testigo.event e WHERE e.subject = j.id
                 ) AS e ON true
            WHERE CASE WHEN a.job_id IS NULL THEN e.requests <> 1 OR e.earliest <> 'job.requested'
                       ELSE e.events > 0 OR j.state <> 'created' END
            """
        ),
    ),
    Invariant(
        "each event of a job has a higher revision than the one before, and none is above the job's",
        Statement(
            """
            SELECT e.subject, e.stream, e.sequence, e.type, e.revision, j.revision AS of_the_job
            FROM (SELECT *, lag(revision) OVER (PARTITION BY subject ORDER BY stream, sequence) AS before
                  FROM testigo.event) AS e
                 JOIN testigo.job j ON j.id = e.subject
            WHERE e.revision <= e.before OR e.revision > j.revision OR e.stream <> j.stream
            """
        ),
    ),
    Invariant(
        "a job ends once: its last event is its end, and tells the state that it is in",
        Statement(
            f"""
            SELECT j.id, j.state, j.revision, e.ends, e.latest, e.at_revision
            FROM testigo.job j
                 JOIN LATERAL (
                     SELECT count(*) FILTER (WHERE {_ENDS_A_JOB}) AS ends, max(e.revision) AS at_revision,
                            (array_agg(e.type ORDER BY e.revision DESC))[1] AS latest
                     FROM testigo.event e WHERE e.subject = j.id AND e.type <> 'job.redacted'
                 ) AS e ON true
            WHERE e.ends <> CAST(j.state IN {_TERMINAL} AS integer)
               OR (j.state IN {_TERMINAL} AND (
                   e.latest <> CASE j.state WHEN 'succeeded' THEN 'job.completed'
                                            WHEN 'succeeded_degraded' THEN 'job.degraded'
                                            WHEN 'permanent_failure' THEN 'job.failed'
                                            WHEN 'cancelled' THEN 'job.cancelled'
                                            ELSE 'job.superseded' END
                   OR (e.at_revision <> j.revision
                       AND NOT EXISTS (SELECT FROM testigo.tombstone t WHERE t.job_id = j.id))))
            """
        ),
    ),
    Invariant(
        "an epoch has at most one accepted outcome, and only epochs that were granted have one",
        Statement(
            f"""
            SELECT e.subject, e.epoch, count(*) AS outcomes, max(j.epoch) AS granted
            FROM (SELECT subject, CAST(CAST(data AS json) ->> 'epoch' AS integer) AS epoch
                  FROM testigo.event WHERE type IN {_ENDS_A_RUN}) AS e
                 JOIN testigo.job j ON j.id = e.subject
            WHERE e.epoch IS NOT NULL
            GROUP BY e.subject, e.epoch
            HAVING count(*) > 1 OR e.epoch > max(j.epoch)
                OR (e.epoch = max(j.epoch) AND bool_or(j.lease_id IS NOT NULL))
            """
        ),
    ),
    Invariant(
        "a job's failures and losses are those that its stream tells of, and within its contract",
        Statement(
            """
            SELECT j.id, j.failures, e.failures AS told_failures, j.losses, e.losses AS told_losses
            FROM testigo.job j
                 JOIN LATERAL (
                     SELECT count(*) FILTER (WHERE CAST(e.data AS json) ->> 'code' IS NOT NULL) AS failures,
                            count(*) FILTER (WHERE CAST(e.data AS json) ->> 'losses' IS NOT NULL) AS losses
                     FROM testigo.event e WHERE e.subject = j.id
                 ) AS e ON true
            WHERE j.failures <> e.failures OR j.losses <> e.losses
               OR j.failures > j.attempts OR j.losses > j.crash_limit
            """
        ),
    ),
    # who owns it (spec D-03, P-15, P-17)
    Invariant(
        "exactly what is leased, running or cancelling has a lease, of a session that exists",
        Statement(
            f"""
            SELECT j.id, j.state, j.lease_id, j.session_id, j.grant_n
            FROM testigo.job j LEFT JOIN testigo.session s ON s.id = j.session_id
            WHERE (j.state IN {_LEASED}) <> (j.lease_id IS NOT NULL)
               OR num_nulls(j.lease_id, j.session_id, j.grant_n) NOT IN (0, 3)
               OR (j.session_id IS NOT NULL AND s.id IS NULL)
            """
        ),
    ),
    # nothing is stuck, nothing is early (spec P-13, P-25)
    Invariant(
        "what waits for its time has a date, and nothing else has one",
        Statement(
            """
            SELECT j.id, j.state, j.due_at
            FROM testigo.job j
            WHERE CASE j.state
                      WHEN 'retry_waiting' THEN j.due_at IS NULL
                      WHEN 'created' THEN (j.due_at IS NULL)
                                          <> EXISTS (SELECT FROM testigo.admission a WHERE a.job_id = j.id)
                      ELSE j.due_at IS NOT NULL
                  END
            """
        ),
    ),
    Invariant(
        "exactly what has ended has the time of its end",
        Statement(f"SELECT id, state FROM testigo.job WHERE (state IN {_TERMINAL}) <> (finished_at IS NOT NULL)"),
    ),
    Invariant(
        "a job waits for parents exactly as long as one of them is open",
        Statement(
            f"""
            SELECT j.id, j.state, e.open
            FROM testigo.job j
                 JOIN LATERAL (SELECT count(*) FILTER (WHERE closed IS NULL) AS open
                               FROM testigo.edge e WHERE e.child = j.id) AS e ON true
            WHERE CASE WHEN j.state = 'inputs_pending' THEN e.open = 0
                       WHEN j.state = 'created' OR j.state IN {_TERMINAL} THEN false
                       ELSE e.open > 0 END
            """
        ),
    ),
    Invariant(
        "an edge is open while its parent is, or waits for the successor of one that failed",
        Statement(
            f"""
            SELECT e.parent, e.child, e.policy, e.closed, p.state, p.is_parent
            FROM testigo.edge e JOIN testigo.job p ON p.id = e.parent
            WHERE CASE WHEN e.closed IS NOT NULL THEN e.closed <> CAST(p.state AS text)
                       WHEN p.state NOT IN {_TERMINAL} THEN NOT p.is_parent
                       ELSE p.state IN ('succeeded', 'succeeded_degraded') OR e.policy <> 'wait' END
            """
        ),
    ),
    Invariant(
        "a child whose parent can never succeed has ended, unless it waits for a successor or runs all the same",
        Statement(
            f"""
            SELECT e.parent, e.child, e.policy, e.closed, c.state
            FROM testigo.edge e JOIN testigo.job c ON c.id = e.child
            WHERE e.closed NOT IN ('succeeded', 'succeeded_degraded') AND c.state NOT IN {_TERMINAL}
              AND e.policy <> 'run'
            """
        ),
    ),
    # what was promised exists (spec D-01, D-02; field case R59)
    Invariant(
        "a key names a job that exists, or was pruned behind a tombstone",
        Statement(
            """
            SELECT s.client, s.kind, s.key, s.job_id
            FROM testigo.submission s
            WHERE NOT EXISTS (SELECT FROM testigo.job j WHERE j.id = s.job_id)
              AND NOT EXISTS (SELECT FROM testigo.tombstone t WHERE t.job_id = s.job_id AND t.what = 'pruned')
            """
        ),
    ),
    Invariant(
        "a job that a receipt accepted exists, or was pruned behind a tombstone",
        Statement(
            """
            SELECT r.actor, r.action, a.id
            FROM testigo.receipt r
                 CROSS JOIN LATERAL json_array_elements_text(CAST(r.answer AS json) -> 'jobs')
                     WITH ORDINALITY AS a(id, place)
            WHERE CAST(r.answer AS jsonb) ? 'held'
              AND NOT CAST(r.answer AS jsonb) -> 'held' @> CAST(CAST(a.place - 1 AS text) AS jsonb)
              AND NOT EXISTS (SELECT FROM testigo.job j WHERE j.id = CAST(a.id AS uuid))
              AND NOT EXISTS (SELECT FROM testigo.tombstone t
                              WHERE t.job_id = CAST(a.id AS uuid) AND t.what = 'pruned')
            """
        ),
    ),
    Invariant(
        "a job that was superseded has exactly the successor that says so, and a chain never forks",
        Statement(
            """
            SELECT j.id, j.supersedes, s.job_id, s.successor_id
            FROM testigo.job j FULL JOIN testigo.successor s ON s.successor_id = j.id
            WHERE (j.supersedes IS NOT NULL OR s.job_id IS NOT NULL) AND j.supersedes IS DISTINCT FROM s.job_id
            """
        ),
    ),
)


def broken(db: Database) -> list[str]:
    """The invariants that do not hold now, each with the first few rows that break it."""
    found = []
    for invariant in INVARIANTS:
        rows = db.run(_rows, invariant.breakers)
        if rows:
            shown = "\n".join(f"    {dict(row._mapping)}" for row in rows[:5])
            found.append(f"{invariant.promise}: broken by {len(rows)}, such as\n{shown}")
    return found


def check(db: Database) -> None:
    """Assert every invariant; a failure names each that is broken, and the rows."""
    found = broken(db)
    assert not found, "\n".join(found)


def _rows(c: Connection, statement: Statement) -> list[Row[Any]]:
    return statement.rows(c)
