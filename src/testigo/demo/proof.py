"""What became of the demo's work: read from the database alone, when everything that ran is gone.

No process is asked and nothing that the demo remembers counts, but for the names of its submissions. What was
accepted is what their receipts list, for that is what a client was told; what happened is what the events tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.store.sql import Statement

__all__ = ["Findings", "Proof", "prove"]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the jobs found, added up from their outputs."""

    files: int
    size_bytes: int
    lines: int
    tokens: int
    linted: int
    """Files that ruff looked at."""
    diagnostics: int
    often: tuple[tuple[str, int], ...]
    """The rules that were broken most often, and how often."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The work, counted. All is well exactly if `lost`, `doubled` and `gaps` are 0."""

    submitted: int
    """Jobs that the receipts of the submissions list."""
    succeeded: int
    degraded: int
    """Of those that succeeded: within limits."""
    failed: int
    """Jobs that ended without success."""
    recovered: int
    """Runs that were lost with their process, and whose job ran again."""
    lost: int
    """Accepted jobs that have no end, or are not there."""
    doubled: int
    """Jobs with more than one accepted end, runs with more than one outcome, and jobs that nobody accepted."""
    gaps: int
    """Numbers that are missing in the streams of events."""
    late: int
    """Results that came after their run was taken back: kept as evidence, changing nothing."""
    events: int
    findings: Findings

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, nothing doubled, and the history is whole."""
        return self.lost == self.doubled == self.gaps == 0


# A job's end is the event that says so, and the state of the job must be the one that it tells. A run is ended
# by one event, which names its epoch.
_JOBS = Statement(
    """
    WITH accepted AS MATERIALIZED (
        SELECT CAST(a.id AS uuid) AS id
        FROM testigo.receipt r
             CROSS JOIN LATERAL json_array_elements_text(CAST(r.answer AS json) -> 'jobs') AS a(id)
        WHERE r.actor = :actor AND r.action = ANY(CAST(:actions AS text[]))
    )
    SELECT count(*) AS submitted,
           count(*) FILTER (WHERE j.state IN ('succeeded', 'succeeded_degraded')) AS succeeded,
           count(*) FILTER (WHERE j.state = 'succeeded_degraded') AS degraded,
           count(*) FILTER (WHERE j.state IN ('permanent_failure', 'cancelled', 'superseded')) AS failed,
           count(*) FILTER (WHERE coalesce(e.ends, 0) = 0 OR e.state <> CAST(j.state AS text)) AS lost,
           count(*) FILTER (WHERE e.ends > 1 OR e.runs > e.epochs) AS doubled,
           coalesce(sum(e.recovered), 0) AS recovered,
           coalesce(sum(e.late), 0) AS late,
           (SELECT count(*)
            FROM testigo.job k
            WHERE k.queue = :queue AND k.id NOT IN (SELECT id FROM accepted)) AS unaccepted
    FROM accepted a
         LEFT JOIN testigo.job j ON j.id = a.id
         LEFT JOIN LATERAL (
             SELECT count(*) FILTER (WHERE ends) AS ends,
                    max(state) FILTER (WHERE ends) AS state,
                    count(epoch) AS runs,
                    count(DISTINCT epoch) AS epochs,
                    count(*) FILTER (WHERE type = 'job.lost' AND epoch < j.epoch) AS recovered,
                    (SELECT count(*) FROM testigo.late l WHERE l.job_id = j.id) AS late
             FROM (SELECT type, CAST(data AS json) ->> 'state' AS state,
                          CAST(CAST(data AS json) ->> 'epoch' AS integer) AS epoch,
                          type IN ('job.completed', 'job.degraded', 'job.cancelled', 'job.superseded')
                          OR CAST(data AS json) ->> 'state' = 'permanent_failure' AS ends
                   FROM testigo.event
                   WHERE subject = j.id AND type NOT IN ('job.leased', 'job.started')) AS told
         ) AS e ON true
    """
)

_STREAMS = Statement(
    """
    SELECT coalesce(sum(e.events), 0) AS events, coalesce(sum(s.head - s.floor - e.numbers), 0) AS gaps
    FROM testigo.stream s
         CROSS JOIN LATERAL (SELECT count(*) AS events,
                                    count(DISTINCT sequence) FILTER (WHERE sequence > s.floor AND sequence <= s.head)
                                    AS numbers
                             FROM testigo.event
                             WHERE stream = s.name) AS e
    WHERE s.name IN (SELECT stream FROM testigo.job WHERE queue = :queue)
    """
)

_FOUND = Statement(
    """
    SELECT count(*) AS files, coalesce(sum(CAST(o ->> 'size_bytes' AS bigint)), 0) AS size_bytes,
           coalesce(sum(CAST(o ->> 'lines' AS bigint)), 0) AS lines,
           coalesce(sum(CAST(o ->> 'tokens' AS bigint)), 0) AS tokens,
           count(o ->> 'diagnostics') AS linted
    FROM (SELECT CAST(output AS json) AS o
          FROM testigo.job
          WHERE queue = :queue AND state IN ('succeeded', 'succeeded_degraded')) AS j
    """
)

_BROKEN_RULES = Statement(
    """
    SELECT d.key AS rule, sum(CAST(d.value AS bigint)) AS times
    FROM testigo.job j
         CROSS JOIN LATERAL jsonb_each_text(
             CASE jsonb_typeof(CAST(j.output AS jsonb) -> 'diagnostics')
                 WHEN 'object' THEN CAST(j.output AS jsonb) -> 'diagnostics' ELSE '{}' END) AS d
    WHERE j.queue = :queue AND j.state IN ('succeeded', 'succeeded_degraded')
    GROUP BY d.key
    ORDER BY times DESC, rule
    """
)

OFTEN = 3


def prove(c: Connection, queue: str, submissions: Sequence[Action]) -> Proof:
    """Count what became of the jobs that these submissions to a queue brought."""
    (jobs,) = _JOBS.rows(c, queue=queue, actor=submissions[0].actor, actions=[each.id for each in submissions])
    (streams,) = _STREAMS.rows(c, queue=queue)
    return Proof(
        submitted=jobs.submitted,
        succeeded=jobs.succeeded,
        degraded=jobs.degraded,
        failed=jobs.failed,
        recovered=int(jobs.recovered),
        lost=jobs.lost,
        doubled=jobs.doubled + jobs.unaccepted,
        gaps=int(streams.gaps),
        late=int(jobs.late),
        events=int(streams.events),
        findings=_findings(c, queue),
    )


def _findings(c: Connection, queue: str) -> Findings:
    (found,) = _FOUND.rows(c, queue=queue)
    rules = [(row.rule, int(row.times)) for row in _BROKEN_RULES.rows(c, queue=queue)]
    return Findings(
        files=found.files,
        size_bytes=int(found.size_bytes),
        lines=int(found.lines),
        tokens=int(found.tokens),
        linted=found.linted,
        diagnostics=sum(times for _, times in rules),
        often=tuple(rules[:OFTEN]),
    )
