"""redact: take out of a job that has ended what must not be kept, and leave a tombstone (spec B-11, P-26).

What is taken out is replaced, never deleted: a document by `{"redacted":"<tombstone>"}`, the words of
people and handlers in the job's events by `redacted`. Ids, sequences, states and counts stay, so
streams stay whole and runs can still be told. The tombstone says who did it, why, and the digest of what
is gone; the database refuses the change without it. Rows are overwritten in this transaction; the
server's own leavings (dead rows, its log, backups) go with its vacuum and the retention of those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.jobs import LockedJob, existing, lock
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, StateConflict
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.identity import digest
from testigo.rules.states import TERMINAL
from testigo.rules.transitions import EventType
from testigo.store.sql import Statement

__all__ = ["Part", "Redacted", "redact"]


class Part(StrEnum):
    """What can be taken out of a job."""

    PAYLOAD = "payload"
    CHECKPOINT = "checkpoint"
    OUTPUT = "output"
    """With the names of its limitations."""
    ERROR = "error"
    LOG = "log"
    """Every line that its runs logged, and the note of their progress."""
    LATE = "late"
    """Every late result's document and note."""
    EVENTS = "events"
    """The words that its events tell: codes, messages, needs, notes and limitations."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """The receipt of a redaction: its tombstone, the digest of what is gone, and the job's revision since."""

    job_id: JobId
    tombstone: str
    digest: str
    revision: int
    replayed: bool


_MARKS = Statement(
    """
    SELECT CAST(id AS text) AS tombstone
    FROM testigo.tombstone
    WHERE job_id = CAST(:job AS uuid) AND what = 'redacted'
    """
)

# What there is to take out: the exact texts, named by their digests. What an earlier redaction left is no text.
_TEXTS = Statement(
    """
    SELECT t.part, t.name, 'sha256:' || encode(sha256(convert_to(t.text, 'UTF8')), 'hex') AS digest
    FROM (
        SELECT p.part, p.name, p.text
        FROM testigo.job j
             CROSS JOIN LATERAL (
                 VALUES ('payload', 'payload', j.payload),
                        ('checkpoint', 'checkpoint', j.checkpoint),
                        ('output', 'output', j.output),
                        ('output', 'limitations', CAST(to_json(j.limitations) AS text)),
                        ('error', 'error', j.error)
             ) AS p(part, name, text)
        WHERE j.id = CAST(:job AS uuid)
        UNION ALL
        SELECT 'log', l.epoch || ' ' || l.n, l.text
        FROM testigo.job_log l
        WHERE l.job_id = CAST(:job AS uuid)
        UNION ALL
        SELECT 'log', 'note', g.note
        FROM testigo.progress g
        WHERE g.job_id = CAST(:job AS uuid)
        UNION ALL
        SELECT 'late', l.id || ' ' || p.name, p.text
        FROM testigo.late l
             CROSS JOIN LATERAL (VALUES ('document', l.document), ('note', l.note)) AS p(name, text)
        WHERE l.job_id = CAST(:job AS uuid)
        UNION ALL
        SELECT 'events', CAST(e.id AS text), e.data
        FROM testigo.event e
        WHERE e.subject = CAST(:job AS uuid) AND e.type <> 'job.redacted'
          AND CAST(e.data AS json) ->> 'redacted' IS NULL
    ) AS t
    WHERE t.part = ANY (CAST(:parts AS text[])) AND t.text <> ALL (CAST(:marks AS text[]))
    ORDER BY t.part, t.name
    """
)

_EVENTS = Statement(
    """
    SELECT stream, sequence, type, data
    FROM testigo.event
    WHERE subject = CAST(:job AS uuid) AND type <> 'job.redacted' AND CAST(data AS json) ->> 'redacted' IS NULL
    """
)

_BURY = Statement(
    """
    INSERT INTO testigo.tombstone (id, job_id, what, state, digest, actor, action, note, at)
    VALUES (CAST(:id AS uuid), CAST(:job AS uuid), 'redacted', CAST(:state AS testigo.job_state), :digest,
            :actor, :action, :note, now())
    """
)

_LATE = Statement(
    """
    UPDATE testigo.late
    SET document = CASE WHEN document <> ALL (CAST(:marks AS text[])) THEN :mark ELSE document END,
        note = CASE WHEN note <> ALL (CAST(:marks AS text[])) THEN :mark ELSE note END
    WHERE job_id = CAST(:job AS uuid)
    """
)

_LOG = Statement(
    """
    WITH noted AS (
        UPDATE testigo.progress
        SET note = :mark
        WHERE job_id = CAST(:job AS uuid) AND note <> ALL (CAST(:marks AS text[]))
    )
    UPDATE testigo.job_log
    SET text = :mark
    WHERE job_id = CAST(:job AS uuid) AND text <> ALL (CAST(:marks AS text[]))
    """
)

# The events are rewritten under their stream's head, as whoever prunes them holds it.
_REDACT = Statement(
    """
    WITH redacted AS (
        UPDATE testigo.job j
        SET revision = j.revision + 1,
            payload = CASE WHEN w.payload AND j.payload <> ALL (w.marks) THEN :mark ELSE j.payload END,
            checkpoint = CASE WHEN w.checkpoint AND j.checkpoint <> ALL (w.marks) THEN :mark ELSE j.checkpoint END,
            output = CASE WHEN w.output AND j.output <> ALL (w.marks) THEN :mark ELSE j.output END,
            limitations = CASE WHEN w.output AND j.limitations IS NOT NULL THEN ARRAY[:word]
                               ELSE j.limitations END,
            error = CASE WHEN w.error AND j.error <> ALL (w.marks) THEN :mark ELSE j.error END
        FROM (SELECT 'payload' = ANY (p.parts) AS payload, 'checkpoint' = ANY (p.parts) AS checkpoint,
                     'output' = ANY (p.parts) AS output, 'error' = ANY (p.parts) AS error, p.marks
              FROM (SELECT CAST(:parts AS text[]) AS parts, CAST(:marks AS text[]) AS marks) AS p) AS w
        WHERE j.id = CAST(:job AS uuid)
        RETURNING j.id, j.stream, j.revision
    ),
    head AS (
        INSERT INTO testigo.stream AS s (name, head, appended_at)
        SELECT stream, 1, clock_timestamp()
        FROM redacted
        ON CONFLICT (name) DO UPDATE
            SET head = s.head + 1, appended_at = greatest(s.appended_at, excluded.appended_at)
        RETURNING name, head, appended_at
    ),
    rewritten AS (
        UPDATE testigo.event e
        SET data = i.data
        FROM head, unnest(CAST(:streams AS text[]), CAST(:sequences AS bigint[]), CAST(:data AS text[]))
                       AS i(stream, sequence, data)
        WHERE e.stream = i.stream AND e.sequence = i.sequence
        RETURNING 1
    )
    INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
    SELECT h.name, h.head, CAST(:event AS uuid), 'job.redacted', r.id, h.appended_at, r.revision, :actor, :action,
           :told
    FROM redacted r, head h, (SELECT count(*) FROM rewritten) AS done
    RETURNING revision
    """
)

_WORD = "redacted"

_WORDS = frozenset({"code", "message", "needs", "note", "limitations"})
"""The members of events that people or handlers worded."""

_WORDED_REASONS = frozenset({EventType.BLOCKED, EventType.RELEASED})
"""The events whose `reason` is the holder's: any other's is a word of the engine."""


def redact(c: Connection, job_id: JobId, parts: Sequence[Part], *, note: str, action: Action) -> Redacted:
    """Take these parts out of a job that has ended; `note` says why, for ever, so it holds none of them.

    It may be repeated, for other parts or after a late result came. What superseded the job, or was
    superseded by it, has a payload of its own (`read.lineage` names those jobs). Raises `NotFound`, and
    `StateConflict` for a job that has not ended.
    """
    fields.must_be_id(job_id, field="job")
    fields.sequence(parts, field="parts", most=len(Part))
    chosen = sorted({fields.member(part, Part, field="parts") for part in parts})
    why = discreet(note).strip()
    if not chosen:
        raise Invalid("Nothing is to be redacted.", field="parts", limit=", ".join(Part))
    if not why:
        raise Invalid("A redaction says why.", field="note", limit="at least 1 character")
    asked = digest_of(action, "redact", [job_id, chosen, note])
    receipt = exactly_once(c, action, asked, lambda: _redact(c, job_id, chosen, why, action))
    return Redacted(job_id, **receipt.answer, replayed=receipt.replayed)


def _redact(c: Connection, job_id: JobId, parts: Sequence[str], note: str, action: Action) -> dict[str, object]:
    (job,) = existing(lock(c, [job_id]), [job_id])
    _check_ended(job)
    tombstone = new_id()
    marks = [_mark(row.tombstone) for row in _MARKS.rows(c, job=job_id)]
    texts = _TEXTS.rows(c, job=job_id, parts=parts, marks=[*marks, json.dumps([_WORD])])
    gone = [[row.part, row.name, row.digest] for row in texts]
    rewritten = _EVENTS.rows(c, job=job_id) if Part.EVENTS in parts else []
    of_gone = digest("redacted", {"job": job_id, "texts": gone})
    own = {"job": job_id, "actor": action.actor, "action": action.id}
    # The trigger looks for the tombstone, so it is there before the change.
    _BURY.rows(c, id=tombstone, state=str(job.state), digest=of_gone, note=note, **own)
    mark = {"mark": _mark(tombstone), "marks": marks}
    if Part.LATE in parts:
        _LATE.rows(c, job=job_id, **mark)
    if Part.LOG in parts:
        _LOG.rows(c, job=job_id, **mark)
    told = {"tombstone": tombstone, "parts": parts, "digest": of_gone, "note": note}
    (row,) = _REDACT.rows(
        c,
        parts=parts,
        streams=[event.stream for event in rewritten],
        sequences=[event.sequence for event in rewritten],
        data=[_without_words(event, tombstone) for event in rewritten],
        event=new_id(),
        word=_WORD,
        told=json.dumps(told, separators=(",", ":")),
        **mark,
        **own,
    )
    return {"tombstone": tombstone, "digest": of_gone, "revision": row.revision}


def _check_ended(job: LockedJob) -> None:
    if job.state not in TERMINAL:
        raise StateConflict(
            f"The job {job.id} is {job.state}: what has not ended may still need what would be redacted.",
            field="job",
            remedy="Cancel it, or wait until it has ended; then redact it.",
            state=str(job.state),
        )


def _mark(tombstone: str) -> str:
    return f'{{"redacted":"{tombstone}"}}'


def _without_words(event: Row[Any], tombstone: str) -> str:
    told: Mapping[str, object] = json.loads(event.data)
    worded = _WORDS | {"reason"} if event.type in _WORDED_REASONS else _WORDS
    kept = {name: _unworded(value) if name in worded else value for name, value in told.items()}
    return json.dumps({**kept, "redacted": tombstone}, separators=(",", ":"))


def _unworded(value: object) -> object:
    return [_WORD] if isinstance(value, list) else _WORD
