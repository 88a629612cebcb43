"""roll_up: count what happened since the last time, each event once (spec B-03, P-07, P-27).

A stream has no gaps, so how far it was counted is one number; that number and what it stands for are written
together. Of events that were pruned before they were counted nothing is known, and nothing is told.

A queue keeps no event of a start unless it is asked to, so how long a job waited is told by its row: when it
became ready last, and when its last run began. That is so for each job that has ended in success or failure,
and that is still there when it is counted.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.rules import fields
from testigo.settings import LIMITS, RETENTION
from testigo.statistics.model import Rolled, Span
from testigo.store.sql import Statement

__all__ = ["roll_up"]

SAMPLE_SECONDS = 10
"""Between two looks at the backlog."""

_STREAMS_MAX = 100
"""Streams that one step counts; the next step begins with those after them."""

_QUEUES_MAX = 200
"""Queues whose backlog is looked at: the first by name."""

# One counts at a time; another finds nothing to do. What the lock guards is read by later statements.
_BEGIN = Statement(
    """
    SELECT place, sampled_at < now() - :seconds * interval '1 second' AS samples
    FROM testigo.statistic_walk
    FOR UPDATE SKIP LOCKED
    """
)

# A stream's next events are a prefix of what is left of it, so that its cursor is where they end; what was
# pruned is passed over. The jobs are looked up by their ids, for their kinds and their waits. What happened so
# long ago that a step is not kept any more is not counted in it.
_ROLL = Statement(
    """
    WITH behind AS MATERIALIZED (
        SELECT s.name, s.head, greatest(coalesce(c.sequence, 0), s.floor) AS after
        FROM testigo.stream s LEFT JOIN testigo.statistic_cursor c ON c.stream = s.name
        WHERE s.head > coalesce(c.sequence, 0)
        ORDER BY s.name COLLATE "C" <= :place, s.name COLLATE "C"
        LIMIT :streams
    ),
    told AS MATERIALIZED (
        SELECT b.name AS stream, e.sequence, e.at, e.type, e.subject, CAST(e.data AS json) AS data
        FROM behind b
             CROSS JOIN LATERAL (
                 SELECT e.sequence, e.at, e.type, e.subject, e.data
                 FROM testigo.event e
                 WHERE e.stream = b.name AND e.sequence > b.after
                 ORDER BY e.sequence
                 LIMIT greatest(1, :limit / (SELECT count(*) FROM behind))
             ) AS e
    ),
    known AS (
        SELECT t.at, split_part(t.stream, '#', 1) AS queue, coalesce(j.kind, t.data ->> 'kind', '') AS kind,
               CASE
                   WHEN t.type = 'job.requested' THEN 'requested'
                   WHEN t.type IN ('job.completed', 'job.degraded') THEN 'succeeded'
                   WHEN t.type = 'job.failed' AND t.data ->> 'state' = 'permanent_failure' THEN 'failed'
                   WHEN t.type = 'job.failed' THEN 'retried'
                   WHEN t.type = 'job.lost' THEN 'lost'
                   WHEN t.type = 'job.cancelled' THEN 'cancelled'
               END AS measure,
               CAST(t.data ->> 'run_seconds' AS double precision) AS run,
               CASE WHEN t.type IN ('job.completed', 'job.degraded', 'job.failed') AND t.data ->> 'epoch' IS NOT NULL
                    THEN j.wait END AS wait
        FROM told t
             LEFT JOIN LATERAL (
                 SELECT j.kind, CASE WHEN j.finished_at IS NOT NULL AND j.started_at >= j.ready_at
                                     THEN extract(epoch FROM j.started_at - j.ready_at) END AS wait
                 FROM testigo.job j
                 WHERE j.id = t.subject
                 OFFSET 0
             ) AS j ON true
    ),
    counted AS (
        SELECT at, queue, kind, measure, 0 AS bucket FROM known WHERE measure IS NOT NULL
        UNION ALL
        SELECT at, queue, kind, 'run', testigo.bucket_of(run) FROM known WHERE run IS NOT NULL
        UNION ALL
        SELECT at, queue, kind, 'wait', testigo.bucket_of(CAST(wait AS double precision))
        FROM known
        WHERE wait IS NOT NULL AND measure IN ('succeeded', 'failed')
    ),
    added AS (
        INSERT INTO testigo.statistic AS s (step_seconds, scope, at, name, measure, bucket, n)
        SELECT step, w.scope, to_timestamp(floor(extract(epoch FROM at) / step) * step), w.name, measure, bucket,
               count(*)
        FROM counted
             CROSS JOIN LATERAL (VALUES ('all', ''), ('queue', queue), ('kind', kind)) AS w(scope, name)
             CROSS JOIN unnest(CAST(:steps AS integer[]), CAST(:kept AS integer[])) AS k(step, seconds)
        WHERE at > now() - k.seconds * interval '1 second'
        GROUP BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (step_seconds, scope, at, name, measure, bucket) DO UPDATE SET n = s.n + excluded.n
    ),
    reached AS (
        INSERT INTO testigo.statistic_cursor AS c (stream, sequence)
        SELECT b.name, coalesce(max(t.sequence), b.after)
        FROM behind b LEFT JOIN told t ON t.stream = b.name
        GROUP BY b.name, b.after
        ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence
        RETURNING stream, sequence
    )
    SELECT (SELECT count(*) FROM told) AS events,
           (SELECT count(*) FROM behind) = :streams
               OR EXISTS (SELECT FROM reached r JOIN behind b ON b.name = r.stream WHERE r.sequence < b.head) AS more,
           (SELECT count(*) FROM behind) AS streams,
           coalesce((SELECT max(name COLLATE "C") FROM behind WHERE name COLLATE "C" > :place), '') AS place
    """
)

# The highest of a step's samples stays. Each queue is counted to a bound, along the index of claims.
_SAMPLE = Statement(
    """
    WITH waiting AS MATERIALIZED (
        SELECT known.name, (SELECT count(*)
                            FROM (SELECT
                                  FROM testigo.job j
                                  WHERE j.queue = known.name AND j.state IN ('ready', 'checkpointed')
                                  ORDER BY j.queue, j.priority, j.ready_at, j.id
                                  LIMIT :count_max) AS counted) AS n
        FROM (SELECT DISTINCT split_part(name, '#', 1) AS name
              FROM testigo.stream
              ORDER BY 1
              LIMIT :queues) AS known
    )
    INSERT INTO testigo.statistic AS s (step_seconds, scope, at, name, measure, bucket, n)
    SELECT step, w.scope, to_timestamp(floor(extract(epoch FROM now()) / step) * step), w.name, 'backlog', 0, w.n
    FROM (SELECT 'queue' AS scope, name, n FROM waiting
          UNION ALL
          SELECT 'all', '', coalesce(sum(n), 0) FROM waiting) AS w
         CROSS JOIN unnest(CAST(:steps AS integer[])) AS step
    ON CONFLICT (step_seconds, scope, at, name, measure, bucket) DO UPDATE SET n = greatest(s.n, excluded.n)
    """
)

_PRUNE = Statement(
    """
    DELETE FROM testigo.statistic
    WHERE (step_seconds, scope, at, name, measure, bucket) IN (
        SELECT o.step_seconds, o.scope, o.at, o.name, o.measure, o.bucket
        FROM unnest(CAST(:steps AS integer[]), CAST(:kept AS integer[])) AS k(step, seconds)
             CROSS JOIN (VALUES ('all'), ('queue'), ('kind')) AS w(scope)
             CROSS JOIN LATERAL (
                 SELECT *
                 FROM testigo.statistic s
                 WHERE s.step_seconds = k.step AND s.scope = w.scope
                   AND s.at < now() - k.seconds * interval '1 second'
                 ORDER BY s.at
                 LIMIT :limit
             ) AS o
    )
    """
)

_END = Statement(
    """
    UPDATE testigo.statistic_walk
    SET place = :place, sampled_at = CASE WHEN :sampled THEN now() ELSE sampled_at END
    """
)

_DAY = 86_400


def roll_up(c: Connection, limit: int = 5_000, *, kept_days: int = RETENTION.statistics_days) -> Rolled:
    """Count about `limit` events that were not counted yet, and look at the backlog now and then.

    What is counted goes to a step of time of each span: that in which it was appended, by the database's clock.
    Two of three steps are kept for twice their span, the coarsest for `kept_days`. Whoever calls
    it while another counts is answered that there is nothing to do. Repeating it goes on, so it needs no receipt.
    """
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    walk = _BEGIN.row(c, seconds=SAMPLE_SECONDS)
    if walk is None:
        return Rolled(0, more=False)
    steps, kept = [span.step_seconds for span in Span], [_kept_seconds(span, kept_days) for span in Span]
    (rolled,) = _ROLL.rows(c, place=walk.place, streams=_STREAMS_MAX, limit=limit, steps=steps, kept=kept)
    if walk.samples:
        _SAMPLE.rows(c, steps=steps, queues=_QUEUES_MAX, count_max=LIMITS.count_max)
        _PRUNE.rows(c, steps=steps, kept=kept, limit=LIMITS.batch_max)
    if rolled.streams or walk.samples:
        _END.rows(c, place=rolled.place, sampled=walk.samples)
    return Rolled(rolled.events, rolled.more)


def _kept_seconds(span: Span, days: int) -> int:
    return days * _DAY if span is Span.WEEK else 2 * span.seconds
