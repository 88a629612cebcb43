"""claim: take what is ready, for a session, in one statement (spec D-03, P-12 to P-14, P-17).

Claiming waits for nobody: a job that another worker is taking is passed over. Each job taken rises
by an epoch and a revision, and its lease is named by the claim and the job together (decision
record 0010). A claim that got nothing writes no receipt, so its resend may claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionAction
from testigo.authority.receipts import digest_of, once, outlived
from testigo.errors import CursorInvalid, Invalid
from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement, array

__all__ = ["Claimed", "Hint", "Lease", "QueueClaim", "claim"]


class Hint(NamedTuple):
    """The place in a queue after which a claim looks: the last job that an earlier claim saw (P-14)."""

    priority: int = -(2**31)
    ready_at: str = "-infinity"
    id: str = "00000000-0000-0000-0000-000000000000"


FROM_THE_FRONT = Hint()
"""The hint of a claim that walks its queue from the front."""


@dataclass(frozen=True, slots=True)
class QueueClaim:
    """How many jobs to take from one queue at most, looking after `hint`."""

    queue: str
    slots: int
    hint: Hint = FROM_THE_FRONT


class Lease(NamedTuple):
    """One job's grant to a session: what to do, under which lease and epoch, from which checkpoint.

    `failures` and `losses` count the earlier ones; `timeout_seconds` is the hard limit of this run, and
    `trace` the W3C traceparent that its submission carried.
    """

    job_id: JobId
    kind: str
    queue: str
    lease_id: str
    epoch: int
    revision: int
    failures: int
    losses: int
    timeout_seconds: float
    finish_by: datetime | None
    started: bool
    payload: Document
    checkpoint: Document | None
    trace: str | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim took: leases in the order of the queues, and where the next claim may look on.

    `unfit` are jobs that must not be started any more (past `start_by`, `finish_by` or a budget):
    `retire` ends them. `lost` are jobs whose lease was lost before it could be told: a replayed claim
    returns the leases that are still current, and names those that are not (spec P-05).
    """

    leases: tuple[Lease, ...]
    hints: dict[str, Hint]
    unfit: tuple[JobId, ...] = ()
    replayed: bool = False
    lost: tuple[JobId, ...] = ()


# The pick is MATERIALIZED: a subselect with LIMIT that the planner rescans would lease more than
# its limit. Queues are visited in the order given and the outer LIMIT ends the visit. Only a queue
# with events = "full" has its heads locked here. What is returned stays under 64 KiB, because the
# rows stay locked while it is sent: documents beyond it are read by a statement of their own, and what
# the caller knows (queue, kind, lease) is not told again. The rows come in any order, for to sort them
# is to copy their documents; the order of the pick and what is unfit stand in the first of them alone.
# A hint is a row of the pick: whichever it is, the next claim passes over nothing that is ready. The
# jobs are found by `id = ANY` of an array, to which the planner knows one way only; an equality can be a
# walk over the whole index, and stays one in a plan that was prepared while the table was tiny.
_CLAIM = Statement(
    """
    WITH pick AS MATERIALIZED (
        SELECT j.id, j.fit, j.priority, j.ready_at, q.place
        FROM testigo.session s,
             unnest(CAST(:queues AS text[]), CAST(:slots AS integer[]), CAST(:after_priorities AS integer[]),
                    CAST(:after_ready_ats AS timestamptz[]), CAST(:after_ids AS uuid[]))
                 WITH ORDINALITY AS q(name, slots, priority, ready_at, id, place)
             CROSS JOIN LATERAL (
                 SELECT j.id, j.priority, j.ready_at,
                        j.failures < j.attempts AND j.losses < j.crash_limit
                            AND (j.epoch > 0 OR coalesce(j.start_by >= now(), true))
                            AND coalesce(j.finish_by >= now(), true) AS fit
                 FROM testigo.job j
                 WHERE j.queue = q.name
                   AND j.state IN ('ready', 'checkpointed')
                   AND (j.priority, j.ready_at, j.id) > (q.priority, q.ready_at, q.id)
                   AND j.kind = ANY (CAST(:kinds AS text[]))
                   AND j.kind NOT IN (SELECT p.name FROM testigo.pause p WHERE p.scope = 'kind')
                 ORDER BY j.priority, j.ready_at, j.id
                 LIMIT q.slots
                 FOR UPDATE SKIP LOCKED
             ) j
        WHERE s.id = CAST(:session AS uuid) AND s.state = 'open' AND s.low_water <= :n
          AND q.name NOT IN (SELECT p.name FROM testigo.pause p WHERE p.scope = 'queue')
        LIMIT :limit
    ),
    got AS (
        UPDATE testigo.job j
        SET state = CASE WHEN :starts OR j.state = 'checkpointed' THEN CAST('running' AS testigo.job_state)
                         ELSE 'leased' END,
            epoch = j.epoch + 1,
            revision = j.revision + 1,
            checkpoint_n = 0,
            lease_id = CAST(:lease AS uuid),
            session_id = CAST(:session AS uuid),
            grant_n = :n,
            leased_at = now(),
            started_at = CASE WHEN :starts OR j.state = 'checkpointed' THEN now() END
        WHERE j.id = ANY (ARRAY(SELECT pick.id FROM pick WHERE pick.fit))
        RETURNING j.id, j.kind, j.queue, j.stream, j.epoch, j.revision, j.failures, j.losses,
                  j.timeout_seconds, j.finish_by, j.started_at, j.payload, j.checkpoint, j.trace,
                  j.full_events, j.priority, j.ready_at
    ),
    head AS (
        INSERT INTO testigo.stream AS s (name, head, appended_at)
        SELECT stream, count(*), clock_timestamp()
        FROM got
        WHERE full_events
        GROUP BY stream
        ORDER BY stream
        ON CONFLICT (name) DO UPDATE
            SET head = s.head + excluded.head, appended_at = greatest(s.appended_at, excluded.appended_at)
        RETURNING name, head, appended_at
    ),
    appended AS (
        INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
        SELECT h.name, h.head + 1 - row_number() OVER (PARTITION BY h.name ORDER BY g.id DESC),
               testigo.new_event_id(), CASE WHEN g.started_at IS NULL THEN 'job.leased' ELSE 'job.started' END,
               g.id, h.appended_at, g.revision, :actor, :action, json_build_object('epoch', g.epoch)
        FROM got g JOIN head h ON h.name = g.stream
        WHERE g.full_events
        RETURNING 1
    ),
    receipt AS (
        INSERT INTO testigo.session_receipt (session_id, n, ordinal, digest, answer)
        SELECT CAST(:session AS uuid), :n, 0, :digest, json_agg(got.id ORDER BY got.id)
        FROM got, (SELECT count(*) FROM appended) AS told
        HAVING count(*) > 0
        RETURNING 1
    )
    SELECT array_position(CAST(:queues AS text[]), g.queue), CAST(g.id AS text),
           array_position(CAST(:kinds AS text[]), g.kind), g.epoch, g.revision,
           g.failures, g.losses, g.timeout_seconds, g.finish_by, g.started_at IS NOT NULL,
           CASE WHEN g.sent <= :documents_bytes THEN g.payload END,
           CASE WHEN g.sent <= :documents_bytes THEN g.checkpoint END,
           CASE WHEN g.sent <= :documents_bytes THEN g.trace END,
           g.sent > :documents_bytes,
           CASE WHEN g.is_last THEN g.priority END, CASE WHEN g.is_last THEN g.ready_at END,
           CASE WHEN g.row = 1 THEN ARRAY(SELECT CAST(id AS text) FROM pick WHERE fit) END,
           CASE WHEN g.row = 1 THEN ARRAY(SELECT CAST(id AS text) FROM pick WHERE NOT fit) END
    FROM (SELECT *, row_number() OVER walk AS row,
                 sum(octet_length(payload) + coalesce(octet_length(checkpoint), 0)
                     + coalesce(octet_length(trace), 0)) OVER walk AS sent,
                 id IN (SELECT p.id
                        FROM (SELECT id, place, lead(place) OVER () AS next FROM pick WHERE fit) AS p
                        WHERE p.next IS DISTINCT FROM p.place) AS is_last
          FROM got
          WINDOW walk AS (ROWS UNBOUNDED PRECEDING)) AS g
    """
)

# What an earlier send of this claim took, as far as it is still this grant's.
_CURRENT = Statement(
    """
    SELECT CAST(j.id AS text), j.kind, j.queue, CAST(j.lease_id AS text), j.epoch, j.revision, j.failures,
           j.losses, j.timeout_seconds, j.finish_by, j.state <> 'leased', j.payload, j.checkpoint, j.trace
    FROM testigo.job j
    WHERE j.session_id = CAST(:session AS uuid) AND j.grant_n = :n AND j.lease_id IS NOT NULL
    ORDER BY array_position(CAST(:queues AS text[]), j.queue), j.priority, j.ready_at, j.id
    """
)

# IS NOT DISTINCT FROM keeps the planner from the index of all leased jobs.
_DOCUMENTS = Statement(
    """
    SELECT CAST(id AS text) AS id, payload, checkpoint, trace
    FROM testigo.job
    WHERE id = ANY (CAST(:ids AS uuid[])) AND lease_id IS NOT DISTINCT FROM CAST(:lease AS uuid)
    """
)

# Why a claim got nothing: its session is over, an earlier send of it took what there was (then there
# is no row), or what it picked is unfit to be started. It looks where the claim looked, or what stands
# before would hide what the next claim picks as well.
_EMPTY = Statement(
    """
    SELECT ARRAY(
               SELECT CAST(j.id AS text)
               FROM unnest(CAST(:queues AS text[]), CAST(:slots AS integer[]), CAST(:after_priorities AS integer[]),
                           CAST(:after_ready_ats AS timestamptz[]), CAST(:after_ids AS uuid[]))
                        AS q(name, slots, priority, ready_at, id)
                    CROSS JOIN LATERAL (
                        SELECT j.id, j.failures, j.attempts, j.losses, j.crash_limit, j.epoch, j.start_by, j.finish_by
                        FROM testigo.job j
                        WHERE j.queue = q.name AND j.state IN ('ready', 'checkpointed')
                          AND (j.priority, j.ready_at, j.id) > (q.priority, q.ready_at, q.id)
                          AND j.kind = ANY (CAST(:kinds AS text[]))
                          AND j.kind NOT IN (SELECT p.name FROM testigo.pause p WHERE p.scope = 'kind')
                        ORDER BY j.priority, j.ready_at, j.id
                        LIMIT q.slots
                    ) j
               WHERE j.failures >= j.attempts OR j.losses >= j.crash_limit
                  OR (j.epoch = 0 AND j.start_by < now()) OR j.finish_by < now()
               LIMIT :limit
           ) AS unfit
    FROM testigo.session
    WHERE id = CAST(:session AS uuid) AND state = 'open' AND low_water <= :n
      AND NOT EXISTS (SELECT FROM testigo.session_receipt r
                      WHERE r.session_id = CAST(:session AS uuid) AND r.n = :n AND r.ordinal = 0)
    """
)

_ROW_BYTES = 150
"""What a claimed row takes in the answer besides its documents."""


@single_statement
def claim(
    c: Connection,
    queues: Sequence[QueueClaim],
    kinds: Sequence[str],
    *,
    slots: int,
    lease_id: str,
    action: SessionAction,
    starts: bool = True,
) -> Claimed:
    """Take at most `slots` jobs of these kinds, from these queues in this order.

    With `starts` the jobs are running at once; without it they are leased until `start`, except
    those that go on from a checkpoint. A paused queue or kind is passed over: no claim that begins
    after the pause was answered takes from it. `lease_id` is new for each claim, and resent with it.
    Raises `SessionReplaced` when the session is not open, `ReceiptExpired` for an n that is past.
    """
    fields.whole(slots, field="slots", low=1, high=LIMITS.claim_max)
    fields.must_be_id(lease_id, field="lease_id")
    if not queues or not kinds:
        raise Invalid("A claim names at least one queue and one kind.", field="queues" if not queues else "kinds")
    _check(queues, kinds, starts)
    content = [[(q.queue, q.slots) for q in queues], list(kinds), slots, starts]
    digest = digest_of(action, "claim", content)
    place = _place(queues, kinds, slots, action)
    found: list[tuple[Any, ...]] = []

    def send() -> str | None:
        found.extend(_CLAIM.fetch(c, {**place, **_grant(slots, lease_id, action, digest, starts)}))
        return "[]" if found else None

    receipt = once(c, action, digest, send)
    if receipt is None:
        empty = _EMPTY.row(c, **place)
        if empty is not None:
            return Claimed((), {}, tuple(map(JobId, empty.unfit)))
        receipt = outlived(c, action, digest)
    if receipt.replayed:
        return _replayed(c, [q.queue for q in queues], action, receipt.answer)
    return _claimed(c, found, [q.queue for q in queues], kinds, lease_id)


def _check(queues: Sequence[QueueClaim], kinds: Sequence[str], starts: bool) -> None:
    fields.sequence(kinds, field="kinds", most=LIMITS.page_max)
    for at, kind in enumerate(kinds):
        fields.name(kind, field=f"kinds[{at}]")
    for at, wanted in enumerate(queues):
        fields.name(wanted.queue, field=f"queues[{at}].queue")
        fields.whole(wanted.slots, field=f"queues[{at}].slots", low=0, high=fields.INTEGER_MAX)
        if wanted.hint is not FROM_THE_FRONT:
            _check_hint(wanted.hint, f"queues[{at}].hint")
    if len({wanted.queue for wanted in queues}) < len(queues):  # each of its jobs would be picked as often
        raise Invalid("A queue is named twice.", field="queues", remedy="Name each queue once.")
    fields.flag(starts, field="starts")


def _check_hint(hint: Hint, at: str) -> None:
    fields.whole(hint.priority, field=f"{at}.priority", low=-fields.INTEGER_MAX - 1, high=fields.INTEGER_MAX)
    fields.must_be_id(hint.id, field=f"{at}.id")
    if hint.ready_at == FROM_THE_FRONT.ready_at:
        return
    try:
        datetime.fromisoformat(hint.ready_at)
    except (TypeError, ValueError):
        raise CursorInvalid("A hint is what an earlier claim returned.", field=f"{at}.ready_at") from None


def _place(queues: Sequence[QueueClaim], kinds: Sequence[str], slots: int, action: SessionAction) -> dict[str, Any]:
    """Where a claim looks, and for whom."""
    return {
        "queues": array([q.queue for q in queues]),
        "slots": array([min(q.slots, slots) for q in queues]),
        "after_priorities": array([q.hint.priority for q in queues]),
        "after_ready_ats": array([q.hint.ready_at for q in queues]),
        "after_ids": array([q.hint.id for q in queues]),
        "kinds": array(list(kinds)),
        "session": action.session_id,
        "n": action.n,
        "limit": slots,
    }


def _grant(slots: int, lease_id: str, action: SessionAction, digest: str, starts: bool) -> dict[str, Any]:
    """What a claim does with what it picks."""
    return {
        "starts": starts,
        "lease": lease_id,
        "actor": action.actor,
        "action": action.id,
        "digest": digest,
        "documents_bytes": LIMITS.answer_bytes_max - slots * _ROW_BYTES,
    }


def _claimed(
    c: Connection, rows: Sequence[tuple[Any, ...]], queues: Sequence[str], kinds: Sequence[str], lease_id: str
) -> Claimed:
    took = {}
    hints = {}
    left_out = []
    for row in rows:
        (place, job_id, kind, epoch, revision, failures, losses, timeout_seconds, finish_by, started) = row[:10]
        (payload, checkpoint, trace, is_left_out, priority, ready_at, _, _) = row[10:]
        queue = queues[place - 1]
        lease = (job_id, kinds[kind - 1], queue, lease_id, epoch, revision, failures, losses, timeout_seconds)
        took[job_id] = Lease._make((*lease, finish_by, started, payload, checkpoint, trace))
        if is_left_out:
            left_out.append(job_id)
        if ready_at is not None:
            hints[queue] = Hint(priority, ready_at.isoformat(), job_id)
    picked, unfit = rows[0][-2:]
    leases = tuple([took[job_id] for job_id in picked])
    if not left_out:
        return Claimed(leases, hints, tuple(unfit))
    documents = _documents(c, left_out, lease_id)
    lost = tuple(job_id for job_id in left_out if job_id not in documents)
    held = [lease._replace(**documents.get(lease.job_id, {})) for lease in leases if lease.job_id not in lost]
    return Claimed(tuple(held), hints, tuple(unfit), lost=lost)


def _documents(c: Connection, ids: Sequence[JobId], lease_id: str) -> dict[str, dict[str, Any]]:
    """What was too large to be sent under lock; nothing of a job whose lease was lost meanwhile."""
    rows = _DOCUMENTS.rows(c, ids=ids, lease=lease_id)
    return {row.id: {"payload": row.payload, "checkpoint": row.checkpoint, "trace": row.trace} for row in rows}


def _replayed(c: Connection, queues: Sequence[str], action: SessionAction, granted: Sequence[str]) -> Claimed:
    rows = _CURRENT.rows(c, queues=queues, session=action.session_id, n=action.n)
    leases = tuple(Lease._make(row) for row in rows)
    current = {lease.job_id for lease in leases}
    return Claimed(leases, {}, replayed=True, lost=tuple(JobId(gone) for gone in granted if gone not in current))
