"""submit: accept jobs, once, however often the command is sent (spec D-01, B-02, P-02, P-11).

One statement for any batch. A job without parents is admitted in it: it is ready, or waits for its
time, and its stream tells of it. A job with parents, and any job submitted inside a caller's own
transaction, is accepted `created` and unadmitted: it takes no stream lock and no job lock here, and
`admit` tells of it after the commit.

A batch is answered row by row (decision record 0009): a row whose key is taken is answered
`existing` or `conflict`, and the others are accepted. Bad input refuses the whole batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.receipts import Kept, digest_of, expired, once
from testigo.authority.submissions import How, NewJob, Submitted, SubmittedJob, check, content, digest_of_request
from testigo.errors import Busy, Conflict, KeyBusy, KeyConflict, NotFound
from testigo.rules.contract import contract_text
from testigo.rules.graph import outside
from testigo.settings import CONTRACT, STORE
from testigo.store.command import is_autocommit, keeping_lock_timeout, single_statement
from testigo.store.failures import constraint_of, is_lock_timeout
from testigo.store.sql import Statement, array

__all__ = ["submit", "submit_many", "submit_within"]

# The keys are inserted first and in order, so that two batches never wait for each other in a
# circle. Whatever another transaction holds, be it a key or the receipt of an earlier send, is waited
# for at most lock_timeout, which is set before anything is written, and only for a command above the
# receipts' floor: below it there is no input and no receipt. The heads come after the jobs and depend
# on them, in the order of their names. Sequences are dealt backwards from the new head, which needs
# no count. The receipt is last and depends on every effect. The floor is a scalar: in a join, a table of
# one row that nobody ever analyses would multiply what the planner expects by a thousand.
_SUBMIT = Statement(
    """
    WITH bounded AS MATERIALIZED (
        SELECT set_config('lock_timeout', :lock_ms, true)
        WHERE CAST(:created_at AS timestamptz) > (SELECT receipt_floor FROM testigo.installation)
    ),
    input AS MATERIALIZED (
        SELECT i.*,
               i.queue || CASE WHEN q.stripes > 1
                               THEN '#' || abs(hashtext(CAST(i.id AS text)) % q.stripes)
                               ELSE '' END AS stream,
               coalesce(q.events = 'full', false) AS full_events,
               :admits AND i.parents IS NULL AS admitted,
               coalesce(i.run_at > now(), false) AS early
        FROM unnest(
                 CAST(:ids AS uuid[]), CAST(:event_ids AS uuid[]), CAST(:queues AS text[]),
                 CAST(:kinds AS text[]), CAST(:clients AS text[]), CAST(:keys AS text[]),
                 CAST(:digests AS text[]), CAST(:payloads AS text[]), CAST(:priorities AS integer[]),
                 CAST(:run_ats AS timestamptz[]), CAST(:start_bys AS timestamptz[]),
                 CAST(:finish_bys AS timestamptz[]), CAST(:tags AS text[]), CAST(:parents AS text[]),
                 CAST(:policies AS text[]), CAST(:attempts AS integer[]), CAST(:crash_limits AS integer[]),
                 CAST(:timeouts AS double precision[]), CAST(:contracts AS text[]), CAST(:traces AS text[])
             ) WITH ORDINALITY AS i (
                 id, event_id, queue, kind, client, key, digest, payload, priority,
                 run_at, start_by, finish_by, tags, parents, policy, attempts, crash_limit,
                 timeout_seconds, contract, trace, n
             )
             CROSS JOIN bounded
             LEFT JOIN testigo.queue q ON q.name = i.queue
    ),
    keyed AS (
        INSERT INTO testigo.submission (client, kind, key, job_id, request_digest)
        SELECT client, kind, key, id, digest
        FROM input
        WHERE key IS NOT NULL
        ORDER BY client, kind, key, n
        ON CONFLICT DO NOTHING
        RETURNING job_id
    ),
    accepted AS (
        INSERT INTO testigo.job (
            id, queue, kind, stream, client, key, payload, tags, priority, start_by, finish_by,
            attempts, crash_limit, timeout_seconds, contract, trace, created_at, ready_at, full_events,
            state, due_at
        )
        SELECT id, queue, kind, stream, client, key, payload, CAST(tags AS text[]), priority, start_by, finish_by,
               attempts, crash_limit, timeout_seconds, contract, trace, now(), now(), full_events,
               CAST(CASE WHEN admitted AND NOT early THEN 'ready' ELSE 'created' END AS testigo.job_state),
               CASE WHEN admitted AND early THEN run_at END
        FROM input
        WHERE key IS NULL OR id IN (SELECT job_id FROM keyed)
        RETURNING id
    ),
    unadmitted AS (
        INSERT INTO testigo.admission (job_id, actor, action, run_at, parents, policy, event_id)
        SELECT i.id, :actor, :action, i.run_at, coalesce(CAST(i.parents AS uuid[]), '{}'), i.policy, i.event_id
        FROM accepted JOIN input i USING (id)
        WHERE NOT i.admitted
        RETURNING 1
    ),
    lapsing AS (
        INSERT INTO testigo.lapse (job_id, at)
        SELECT i.id, least(i.start_by, i.finish_by)
        FROM accepted JOIN input i USING (id)
        WHERE least(i.start_by, i.finish_by) IS NOT NULL
        RETURNING 1
    ),
    head AS (
        INSERT INTO testigo.stream AS s (name, head, appended_at)
        SELECT i.stream, count(*), clock_timestamp()
        FROM accepted JOIN input i USING (id)
        WHERE i.admitted
        GROUP BY i.stream
        ORDER BY i.stream
        ON CONFLICT (name) DO UPDATE
            SET head = s.head + excluded.head, appended_at = greatest(s.appended_at, excluded.appended_at)
        RETURNING name, head, appended_at
    ),
    appended AS (
        INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
        SELECT h.name, h.head + 1 - row_number() OVER (PARTITION BY h.name ORDER BY i.n DESC),
               i.event_id, 'job.requested', i.id, h.appended_at, 1, :actor, :action,
               json_build_object('queue', i.queue, 'kind', i.kind, 'priority', i.priority, 'run_at', i.run_at)
        FROM accepted JOIN input i USING (id) JOIN head h ON h.name = i.stream
        WHERE i.admitted
        RETURNING 1
    ),
    held AS (
        SELECT coalesce(json_agg(i.n - 1), '[]') AS rows
        FROM input i
        WHERE i.key IS NOT NULL AND i.id NOT IN (SELECT job_id FROM keyed)
    ),
    effects AS (
        SELECT (SELECT count(*) FROM appended) + (SELECT count(*) FROM unadmitted)
             + (SELECT count(*) FROM lapsing) AS n
    )
    INSERT INTO testigo.receipt (actor, action, digest, answer, created_at)
    SELECT :actor, :action, :digest,
           json_build_object('jobs', CAST(:jobs AS json), 'held', held.rows), :created_at
    FROM effects, held, bounded
    WHERE effects.n >= 0
    RETURNING answer
    """
)

_MISSING = Statement(
    """
    SELECT p.id
    FROM unnest(CAST(:ids AS uuid[])) AS p(id)
    WHERE NOT EXISTS (SELECT FROM testigo.job j WHERE j.id = p.id)
    LIMIT 1
    """
)

_THERE = Statement("SELECT 1 FROM testigo.job WHERE id = ANY (CAST(:ids AS uuid[])) LIMIT 1")

_HOLDERS = Statement(
    """
    SELECT i.n, s.job_id, s.request_digest
    FROM unnest(CAST(:ns AS integer[]), CAST(:clients AS text[]), CAST(:kinds AS text[]), CAST(:keys AS text[]))
             AS i(n, client, kind, key)
         JOIN testigo.submission s ON (s.client, s.kind, s.key) = (i.client, i.kind, i.key)
    """
)


@single_statement
def submit(c: Connection, job: NewJob, *, action: Action) -> Submitted:
    """Accept one job. When this returns, the work cannot be lost (spec D-02).

    Raises `Invalid` for bad input, `NotFound` for a parent that does not exist, `KeyConflict` when
    the key names other work, `KeyBusy`, `ActionIdCollision` and `ReceiptExpired`.
    """
    receipt = submit_many(c, [job], action=action)
    if receipt.jobs[0].how is How.CONFLICT:
        raise KeyConflict(
            f"The key {job.key!r} of {job.client!r} already names a {job.kind!r} job with other content.",
            field="key",
            job=receipt.jobs[0].job_id,
        )
    return receipt


@single_statement
def submit_many(c: Connection, jobs: Sequence[NewJob], *, action: Action) -> Submitted:
    """Accept a batch of at most 10,000 jobs in one statement, answered row by row.

    Raises as `submit` does, for the whole batch and before anything is written; but a key conflict
    is the answer of its row. Inside a transaction of the caller's own it is `submit_within`, so that
    no head is held while somebody thinks (spec P-10, P-11).
    """
    if not is_autocommit(c):
        return submit_within(c, jobs, action=action)
    return _submit(c, jobs, action, admits=True)


def submit_within(c: Connection, jobs: Sequence[NewJob], *, action: Action) -> Submitted:
    """Accept jobs inside a caller's own transaction: they exist if and only if it commits (spec P-11).

    No stream is told, and nobody is woken before the commit; workers admit the jobs within one poll of it.
    """
    with keeping_lock_timeout(c):
        return _submit(c, jobs, action, admits=False)


def _submit(c: Connection, jobs: Sequence[NewJob], action: Action, *, admits: bool) -> Submitted:
    check(jobs)
    ids = json.dumps([job.id for job in jobs])
    digest = digest_of(action, "submit", content(jobs))
    parameters = _columns(jobs) | {
        "admits": admits,
        "actor": action.actor,
        "action": action.id,
        "created_at": action.created_at,
        "digest": digest,
        "jobs": ids,
        "lock_ms": str(int(STORE.lock_timeout_seconds * 1000)),
    }
    try:
        receipt = once(c, action, digest, lambda: _send(c, parameters, jobs))
    except Exception as error:
        if constraint_of(error) != "job_pkey":
            raise
        raise _taken(c, jobs) from error
    if receipt is None:
        raise expired(action.id)
    return _answer(c, jobs, receipt)


def _check_parents(c: Connection, jobs: Sequence[NewJob]) -> None:
    elsewhere = outside({job.id: job.parents for job in jobs})
    if not elsewhere:
        return
    missing = _MISSING.row(c, ids=sorted(elsewhere))
    if missing is not None:
        at = next(n for n, job in enumerate(jobs) if str(missing.id) in job.parents)
        raise NotFound(f"The parent {missing.id} does not exist.", field=f"jobs[{at}].parents")


def _send(c: Connection, parameters: dict[str, Any], jobs: Sequence[NewJob]) -> str | None:
    _check_parents(c, jobs)
    try:
        rows = _SUBMIT.fetch(c, parameters)
    except Exception as error:
        if is_lock_timeout(error):
            raise _held(jobs) from error
        raise
    return str(rows[0][0]) if rows else None


def _held(jobs: Sequence[NewJob]) -> KeyBusy:
    """What was waited for in vain: one of the keys, or without any an earlier send of the command, or a stream."""
    keys = ", ".join(sorted({repr(job.key) for job in jobs if job.key is not None})[:5])
    if keys:
        return KeyBusy(f"Another transaction holds one of the keys {keys}.", field="key")
    return KeyBusy("Another transaction, perhaps an earlier send of this command, holds what it needs.")


def _taken(c: Connection, jobs: Sequence[NewJob]) -> Busy | Conflict:
    """Who has the id of one of these jobs: a job that is seen, or one that a caller's snapshot is too old to see."""
    if not _THERE.rows(c, ids=[job.id for job in jobs]):
        return Busy("A job with this id was submitted meanwhile, perhaps by an earlier send of this command.")
    return Conflict(
        "A job with this id was submitted before, by another command.",
        field="id",
        remedy="Make a NewJob for each submission; resend one only with its own action.",
    )


def _answer(c: Connection, jobs: Sequence[NewJob], receipt: Kept) -> Submitted:
    ids: list[str] = receipt.answer["jobs"]
    answers = [SubmittedJob(JobId(job_id), How.ACCEPTED) for job_id in ids]
    held: list[int] = receipt.answer["held"]
    for at, holder, digest in _holders(c, jobs, held):
        how = How.EXISTING if digest == digest_of_request(jobs[at]) else How.CONFLICT
        answers[at] = SubmittedJob(holder, how)
    return Submitted(tuple(answers), receipt.replayed, tuple(sorted({job.queue for job in jobs})))


def _holders(c: Connection, jobs: Sequence[NewJob], held: Sequence[int]) -> list[tuple[int, JobId, str]]:
    """Who holds the keys that were taken: read in a later statement than the one that met them (P-07)."""
    if not held:
        return []
    columns = {"clients": [jobs[n].client for n in held], "kinds": [jobs[n].kind for n in held]}
    rows = _HOLDERS.rows(c, ns=list(held), keys=[jobs[n].key for n in held], **columns)
    if len(rows) < len(held):
        raise NotFound("The job that held the key has been pruned meanwhile.", field="key", remedy="Submit it again.")
    return [(row.n, JobId(str(row.job_id)), row.request_digest) for row in rows]


def _columns(jobs: Sequence[NewJob]) -> dict[str, list[Any]]:
    return {
        "ids": [job.id for job in jobs],
        "event_ids": [new_id() for _ in jobs],
        "queues": [job.queue for job in jobs],
        "kinds": [job.kind for job in jobs],
        "clients": [job.client for job in jobs],
        "keys": [job.key for job in jobs],
        "digests": [None if job.key is None else digest_of_request(job) for job in jobs],
        "payloads": [job.payload for job in jobs],
        "priorities": [CONTRACT.priority if job.priority is None else job.priority for job in jobs],
        "run_ats": [job.run_at for job in jobs],
        "start_bys": [job.start_by for job in jobs],
        "finish_bys": [job.finish_by for job in jobs],
        "tags": [array(job.tags) if job.tags else None for job in jobs],
        "parents": [array(job.parents) if job.parents else None for job in jobs],
        "policies": [job.policy for job in jobs],
        "attempts": [_attempts(job) for job in jobs],
        "crash_limits": [_attempts(job) if job.crash_limit is None else job.crash_limit for job in jobs],
        "timeouts": [CONTRACT.timeout_seconds if job.timeout_seconds is None else job.timeout_seconds for job in jobs],
        "contracts": [contract_text(job.backoff, job.delay_limit_seconds, job.cost_limit) for job in jobs],
        "traces": [job.trace for job in jobs],
    }


def _attempts(job: NewJob) -> int:
    return CONTRACT.attempts if job.attempts is None else job.attempts
