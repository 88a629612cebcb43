"""reprocess: do a job's work again, as a new job that supersedes it (spec A-06, P-25).

What has ended does not change: its successor is a row of its own. Whoever waits for the old job
waits for the new one, and the old job's key names the new one from now on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.admit import admit_these
from testigo.authority.edges import mark_parents, move_to_successor
from testigo.authority.jobs import existing, lock
from testigo.authority.receipts import digest_of, exactly_once
from testigo.authority.write import Change, write
from testigo.errors import StateConflict
from testigo.rules import decide, fields
from testigo.rules.decide import Inputs
from testigo.rules.discreet import discreet
from testigo.store.sql import Statement

__all__ = ["Reprocessed", "reprocess"]


@dataclass(frozen=True, slots=True)
class Reprocessed:
    """The receipt of a reprocess: the job that takes the old one's place."""

    job_id: JobId
    supersedes: JobId
    replayed: bool
    wakes: tuple[str, ...] = ()


_SUCCESSOR = Statement(
    "SELECT CAST(successor_id AS text) AS id FROM testigo.successor WHERE job_id = CAST(:id AS uuid)"
)

# What a redaction left in the place of the payload is nothing to run.
_REDACTED = Statement(
    """
    SELECT CAST(t.id AS text) AS tombstone
    FROM testigo.job j JOIN testigo.tombstone t ON t.job_id = j.id
    WHERE j.id = CAST(:id AS uuid) AND t.what = 'redacted' AND j.payload = '{"redacted":"' || t.id || '"}'
    """
)

# The work and the contract are the same; the counts begin anew, and dates that have passed are left out.
_COPY = Statement(
    """
    WITH copied AS (
        INSERT INTO testigo.job (
            id, queue, kind, stream, client, contract, payload, tags, trace, priority, finish_by, attempts,
            crash_limit, timeout_seconds, full_events, supersedes, state, created_at, ready_at
        )
        SELECT CAST(:id AS uuid), queue, kind, stream, client, contract, payload, tags, trace, priority,
               CASE WHEN finish_by > now() THEN finish_by END, attempts,
               crash_limit, timeout_seconds, full_events, id, 'created', now(), now()
        FROM testigo.job
        WHERE id = CAST(:old AS uuid)
        RETURNING id, finish_by
    ),
    lapsing AS (
        INSERT INTO testigo.lapse (job_id, at)
        SELECT id, finish_by FROM copied WHERE finish_by IS NOT NULL
    )
    INSERT INTO testigo.successor (job_id, successor_id)
    VALUES (CAST(:old AS uuid), CAST(:id AS uuid))
    """
)

# Only the first job of a chain has the key in its row.
_RENAME = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT id, client, kind, key, supersedes FROM testigo.job WHERE id = CAST(:old AS uuid)
        UNION ALL
        SELECT j.id, j.client, j.kind, j.key, j.supersedes
        FROM chain JOIN testigo.job j ON j.id = chain.supersedes
    )
    UPDATE testigo.submission s
    SET job_id = CAST(:id AS uuid)
    FROM chain
    WHERE (s.client, s.kind, s.key) = (chain.client, chain.kind, chain.key)
    """
)


def reprocess(
    c: Connection, job_id: JobId, *, note: str = "", action: Action, new_job_id: JobId | None = None
) -> Reprocessed:
    """Make a new job of the same work that supersedes this one.

    For a job that has ended, is ready or is blocked. Raises `NotFound`; `StateConflict` for a job
    that somebody owns or that waits (cancel it first), for one that has a successor already, and for
    one whose payload was redacted.
    """
    fields.must_be_id(job_id, field="job")
    if new_job_id is not None:
        fields.must_be_id(new_job_id, field="new_job_id")
    digest = digest_of(action, "reprocess", [job_id, note])
    made = new_job_id or JobId(new_id())
    answer = exactly_once(c, action, digest, lambda: _reprocess(c, job_id, made, note, action))
    return Reprocessed(JobId(answer.answer["id"]), job_id, answer.replayed, (answer.answer["queue"],))


def _reprocess(c: Connection, job_id: JobId, made: JobId, note: str, action: Action) -> dict[str, object]:
    jobs, admitted = admit_these(c, [job_id])
    (old,) = existing(jobs, [job_id])
    successor = _SUCCESSOR.row(c, id=job_id)
    if successor is not None:
        raise StateConflict(
            f"The job {job_id} has a successor already.",
            field="job",
            remedy="Reprocess its successor instead.",
            successor=successor.id,
        )
    redacted = _REDACTED.row(c, id=job_id)
    if redacted is not None:
        raise StateConflict(
            f"The payload of the job {job_id} was redacted, so there is nothing to run again.",
            field="job",
            remedy="Submit the work anew, with its payload.",
            tombstone=redacted.tombstone,
        )
    superseded = decide.supersede(old.position)
    _COPY.rows(c, id=made, old=job_id)
    _RENAME.rows(c, id=made, old=job_id)
    waited_for = move_to_successor(c, job_id, made)
    if waited_for:
        mark_parents(c, [made])
    new = lock(c, [made])[made]
    told: dict[str, object] = {
        "queue": new.queue,
        "kind": new.kind,
        "priority": new.priority,
        "supersedes": job_id,
    }
    if note:
        told["note"] = discreet(note)
    changes = [*admitted, Change(new, decide.admit(new.position, Inputs(0), due=True), told)]
    if superseded is not None:
        # Its children wait for the successor by now, so its end is nobody's input.
        changes.append(Change(replace(old, is_parent=False), superseded, {"successor": made}))
    write(c, changes, action=action)
    return {"id": made, "queue": new.queue}
