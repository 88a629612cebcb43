"""The readings of the panel and the API: milliseconds each, with a million jobs and five million events.

An installation is filled by a few statements of the server's own, so that it takes about a minute, with what a
month would have left behind: most jobs done, some failed, a backlog, and five events of each.
"""

from __future__ import annotations

import statistics as figures
import time
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
from sqlalchemy import make_url

from bench.harness import Row, installation, vacuum
from bench.pages import over_http
from testigo.authority.actions import JobId
from testigo.authority.read import Filter, causes, job, jobs, lineage, queues, sessions, states
from testigo.authority.read.kinds import kinds
from testigo.journal.history import history
from testigo.journal.streams import read
from testigo.operations import Selection, Verb, preview
from testigo.rules.contract import contract_text
from testigo.rules.states import State
from testigo.statistics import By, Measure, Span, roll_up, series, totals
from testigo.store.database import Database
from testigo.store.sql import in_schema

__all__ = ["ROWS"]

JOBS = 1_000_000
GOAL_MS = 50.0
"""What the slowest list may take."""

_TIMES = 15

# Ids as they are made over a month; eight queues, each with five kinds. The newest jobs are the ones that still
# wait or run.
_JOBS = """
    INSERT INTO testigo.job (id, created_at, ready_at, timeout_seconds, state, priority, attempts, crash_limit,
                             failures, epoch, queue, kind, stream, client, contract, payload, tags, started_at,
                             finished_at, due_at, lease_id, session_id, grant_n, reason, error)
    SELECT CAST(lpad(to_hex(CAST(extract(epoch FROM at) * 1000 AS bigint)), 12, '0') || '70008000'
                || lpad(to_hex(n), 12, '0') AS uuid),
           at, at, 120, CAST(state AS testigo.job_state), 0, 3, 3,
           CASE WHEN state = 'permanent_failure' THEN 3 ELSE 0 END,
           1, 'queue-' || n %% 8, 'kind-' || n %% 40, 'queue-' || n %% 8, 'shop', %(contract)s,
           '{"order":{"id":' || n || '},"lines":[1,2,3],"note":"a payload of an ordinary size, as most are"}',
           CASE WHEN n %% 10 = 0 THEN ARRAY['nightly', 'region:' || n %% 7] END,
           CASE WHEN state NOT IN ('ready', 'created') THEN at + interval '2 s' END,
           CASE WHEN state IN ('succeeded', 'permanent_failure', 'cancelled') THEN at + interval '9 s' END,
           CASE WHEN state = 'created' THEN now() + interval '1 h' END,
           CASE WHEN state = 'running' THEN gen_random_uuid() END,
           CASE WHEN state = 'running' THEN CAST(md5(CAST(n %% 16 AS text)) AS uuid) END,
           CASE WHEN state = 'running' THEN n END,
           CASE state WHEN 'permanent_failure' THEN 'attempts' WHEN 'blocked_by_quality' THEN 'approval' END,
           CASE WHEN state = 'permanent_failure'
                THEN json_build_object('code', 'E_' || n %% 13, 'message', 'payments answered 502 for order ' || n,
                                       'detail', repeat('  File "handlers.py", line 12, in charge' || chr(10), 12)) END
    FROM (SELECT n, now() - (%(jobs)s - n) * interval '30 days' / %(jobs)s AS at,
                 CASE WHEN n > %(jobs)s * 0.999 THEN CASE n %% 3 WHEN 0 THEN 'running' ELSE 'ready' END
                      WHEN n > %(jobs)s * 0.97 THEN CASE n %% 4 WHEN 0 THEN 'created' ELSE 'ready' END
                      WHEN n %% 80 = 1 THEN 'permanent_failure'
                      WHEN n %% 500 = 2 THEN 'cancelled'
                      WHEN n %% 5000 = 3 THEN 'blocked_by_quality'
                      ELSE 'succeeded' END AS state
          FROM generate_series(1, %(jobs)s) AS n) AS made
"""

_EVENTS = """
    INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
    SELECT j.stream, row_number() OVER (PARTITION BY j.stream ORDER BY j.id, e.n), gen_random_uuid(), e.type, j.id,
           j.created_at + e.n * interval '1 s', e.n, 'host-a/17', 'an action', e.data
    FROM testigo.job j
         CROSS JOIN (VALUES (1, 'job.requested', '{"queue":"queue-1","kind":"kind-1","priority":0}'),
                            (2, 'job.leased', '{"state":"leased","epoch":1}'),
                            (3, 'job.started', '{"state":"running","epoch":1}'),
                            (4, 'job.released', '{"state":"ready","epoch":1,"note":"drained"}'),
                            (5, 'job.completed', '{"state":"succeeded","epoch":1,"run_seconds":1.25}'))
             AS e(n, type, data)
"""

_REST = (
    """
    INSERT INTO testigo.stream (name, head, appended_at)
    SELECT stream, max(sequence), now() FROM testigo.event GROUP BY stream
    """,
    """
    INSERT INTO testigo.statistic_cursor (stream, sequence)
    SELECT name, greatest(0, head - 10000) FROM testigo.stream
    """,
    """
    INSERT INTO testigo.audit (n, at, actor, role, via, credential, what, objects, reason, result, action, asked_at,
                               digest, chain)
    SELECT n, now() - interval '30 days' + n * interval '20 s', 'user:ana', 'operator', 'login', '', 'jobs.cancel',
           ARRAY['job:' || n], 'a reason of an ordinary length', 'done', 'action-' || n, now(), md5(CAST(n AS text)),
           md5(CAST(n AS text))
    FROM generate_series(1, 100000) AS n
    """,
    "UPDATE testigo.audit_head SET n = 100000, at = now()",
    """
    INSERT INTO testigo.session (id, agent, epoch, term_seconds, exclusive)
    SELECT CAST(md5(CAST(n AS text)) AS uuid), 'host-a/' || n, 1, 15, false FROM generate_series(0, 15) AS n
    """,
    """
    INSERT INTO testigo.session_profile (session_id, queues, kinds, host, processes, opened_at)
    SELECT id, ARRAY['queue-0', 'queue-1'], ARRAY['kind-0', 'kind-1'], 'host-a', '{}', now() FROM testigo.session
    """,
    """
    INSERT INTO testigo.statistic (step_seconds, scope, at, name, measure, bucket, n)
    SELECT step, w.scope, to_timestamp((floor(extract(epoch FROM now()) / step) - ago) * step), w.name, m.measure,
           m.bucket, 7
    FROM unnest(ARRAY[60, 1440, 10080]) AS step, generate_series(0, 59) AS ago,
         (SELECT 'all', ''
          UNION ALL
          SELECT 'queue', 'queue-' || n FROM generate_series(0, 7) AS n
          UNION ALL
          SELECT 'kind', 'kind-' || n FROM generate_series(0, 39) AS n) AS w(scope, name),
         (SELECT unnest(ARRAY['requested', 'succeeded', 'failed', 'retried', 'lost', 'cancelled']), 0
          UNION ALL
          SELECT measure, bucket
          FROM unnest(ARRAY['wait', 'run']) AS measure, generate_series(20, 34) AS bucket) AS m(measure, bucket)
    """,
)


def panel_readings(url: str, scale: float) -> Iterator[Row]:
    """Every reading of a page or a list, the median of fifteen; and every page and list over HTTP."""
    with installation(url) as db:
        count = int(JOBS * scale)
        started = time.perf_counter()
        newest = _fill(db, count)
        yield Row(f"filled with {count:,} jobs and {5 * count:,} events", time.perf_counter() - started, "s")
        for name, reading in _readings(db, newest):
            yield Row(name, _milliseconds(reading), "ms", GOAL_MS, lower_is_better=True)
        yield Row("roll_up, 5,000 events", _milliseconds(lambda: db.run(roll_up)), "ms")
        yield from over_http(db, scale)


def _fill(db: Database, count: int) -> JobId:
    conninfo = make_url(db.given_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(conninfo, autocommit=True) as c:
        c.execute(in_schema(_JOBS, db.schema).encode(), {"jobs": count, "contract": contract_text(None, None, None)})
        c.execute(in_schema(_EVENTS, db.schema).encode())
        for statement in _REST:
            c.execute(in_schema(statement, db.schema).encode())
        vacuum(db)
        c.execute(f'VACUUM ANALYZE "{db.schema}".statistic'.encode())
    return db.run(jobs, limit=1).items[0].id


def _readings(db: Database, newest: JobId) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, wanted in _FILTERS.items():
        yield f"jobs {name}", partial(db.run, jobs, wanted)
    deep = Filter(queue="queue-3")
    page = db.run(jobs, deep, limit=1_000)
    yield "jobs, a later page", lambda: db.run(jobs, deep, before=page.next)
    yield "jobs by state, counted", lambda: db.run(states)
    yield "failures by cause", lambda: db.run(causes)
    yield "queues", lambda: db.run(queues)
    yield "kinds", lambda: db.run(kinds)
    yield "workers", lambda: db.run(sessions)
    yield "one job", lambda: db.run(job, newest, documents=True)
    yield "its events", lambda: db.run(history, newest)
    yield "its lineage", lambda: db.run(lineage, newest)
    yield "events of a stream", lambda: db.run(read, "queue-0", after=1_000)
    for span in Span:
        yield f"all series over {span}", partial(db.run, series, list(Measure), span)
    yield "totals by kind over 7d", lambda: db.run(totals, Span.WEEK, by=By.KIND)
    cause = db.run(causes).causes[0].id
    chosen = Selection(wanted=Filter(cause=cause))
    yield "preview of a retry of a cause", lambda: db.run(preview, Verb.RETRY, chosen)
    everything = Selection(wanted=Filter(queue="queue-3"))
    yield "preview of a cancel of a queue", lambda: db.run(preview, Verb.CANCEL, everything)


_FILTERS = {
    "without a filter": Filter(),
    "of a queue": Filter(queue="queue-3"),
    "of a kind, done": Filter(kind="kind-7", states=(State.SUCCEEDED,)),
    "with a tag": Filter(tag="nightly"),
    "with a tag that none has": Filter(tag="unheard-of"),
    "by what is in them, in vain": Filter(payload=(("order", "id"), "-1")),
    "that failed for good": Filter(states=(State.PERMANENT_FAILURE,)),
    "that failed by a code": Filter(states=(State.PERMANENT_FAILURE,), error="E_7"),
    "that nothing resolved": Filter(unresolved=True),
    "that are blocked": Filter(states=(State.BLOCKED_BY_QUALITY,)),
    "that run": Filter(states=(State.RUNNING,)),
    "that are ready": Filter(states=(State.READY,)),
    "that wait for their time": Filter(states=(State.CREATED, State.RETRY_WAITING)),
    "that a worker has": Filter(worker="host-a/3"),
}


def _milliseconds(reading: Callable[[], object]) -> float:
    taken = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        reading()
        taken.append((time.perf_counter() - started) * 1_000)
    return figures.median(taken)


ROWS: tuple[Callable[[str, float], Iterator[Row]], ...] = (panel_readings,)
"""What `python -m bench --panel` measures."""
