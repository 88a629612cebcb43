"""What is kept beside a job: results that came too late, receipts, tombstones (spec B-04, B-11, B-16, P-26)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionId
from testigo.authority.read.pages import FROM_OLDEST, Cursor, Listing, Page, an_id, check_limit
from testigo.errors import NotFound
from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.rules.states import State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["LateResult", "ReceiptView", "Tombstone", "late_results", "receipt", "tombstones"]


@dataclass(frozen=True, slots=True)
class LateResult:
    """What was reported without a lease: evidence that changed nothing (spec B-16).

    `outcome` is the word of the report, `note` what it told of a failure, `found_state` where the job
    stood when it came. `document` is the output or checkpoint, if it was asked for.
    """

    id: str
    job_id: JobId
    epoch: int
    lease_id: str
    session_id: SessionId
    outcome: str
    note: str | None
    document_bytes: int | None
    document: Document | None
    found_state: State
    at: datetime


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """A receipt: what a command answered, the digest of what it asked, and when it was made."""

    actor: str
    action: str
    digest: str
    answer: Any
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was taken out of a job, or that the job was pruned: by whom, why, and the digest of what is gone."""

    id: str
    job_id: JobId
    what: str
    state: State
    digest: str
    actor: str
    action: str
    note: str
    at: datetime


_LATE = Statement(
    """
    SELECT CAST(id AS text) AS id, epoch, CAST(lease_id AS text) AS lease_id, CAST(session_id AS text) AS session_id,
           outcome, note, octet_length(document) AS document_bytes, CASE WHEN :documents THEN document END AS document,
           CAST(found_state AS text) AS found_state, at
    FROM testigo.late
    WHERE job_id = CAST(:job AS uuid) AND id > CAST(:after AS uuid)
    ORDER BY id
    LIMIT :limit + 1
    """
)

_TOMBSTONES = Statement(
    """
    SELECT CAST(id AS text) AS id, what, CAST(state AS text) AS state, digest, actor, action, note, at
    FROM testigo.tombstone
    WHERE job_id = CAST(:job AS uuid) AND id > CAST(:after AS uuid)
    ORDER BY id
    LIMIT :limit + 1
    """
)

_RECEIPT = Statement(
    """
    SELECT digest, answer, created_at
    FROM testigo.receipt
    WHERE actor = :actor AND action = :action
    """
)


@single_statement
def late_results(
    c: Connection, job_id: JobId, *, documents: bool = False, after: Cursor | None = None, limit: int = 100
) -> Page[LateResult]:
    """The results of a job that came without authority, in the order of their coming; none is no error."""
    listing, start = _beside(job_id, "late results", after, limit)
    rows = _LATE.rows(c, job=job_id, documents=documents, after=start, limit=limit)
    found = [
        LateResult(
            id=row.id,
            job_id=job_id,
            epoch=row.epoch,
            lease_id=row.lease_id,
            session_id=SessionId(row.session_id),
            outcome=row.outcome,
            note=row.note,
            document_bytes=row.document_bytes,
            document=None if row.document is None else Document(row.document),
            found_state=State(row.found_state),
            at=row.at,
        )
        for row in rows
    ]
    return listing.page([(late, (late.id,)) for late in found], limit)


@single_statement
def tombstones(c: Connection, job_id: JobId, *, after: Cursor | None = None, limit: int = 100) -> Page[Tombstone]:
    """The tombstones of a job, in the order of their making: its redactions, and that it was pruned."""
    listing, start = _beside(job_id, "tombstones", after, limit)
    rows = _TOMBSTONES.rows(c, job=job_id, after=start, limit=limit)
    found = [
        Tombstone(row.id, job_id, row.what, State(row.state), row.digest, row.actor, row.action, row.note, row.at)
        for row in rows
    ]
    return listing.page([(tombstone, (tombstone.id,)) for tombstone in found], limit)


@single_statement
def receipt(c: Connection, actor: str, action: str) -> ReceiptView:
    """What a command answered, by its actor and action id. Workers' own commands are not found here.

    Raises `NotFound`; that does not mean that the command was not executed (spec P-03, P-04).
    """
    fields.name(actor, field="actor")
    fields.name(action, field="action")
    row = _RECEIPT.row(c, actor=actor, action=action)
    if row is None:
        raise NotFound(
            f"There is no receipt of the action {action!r} of {actor!r}.",
            field="action",
            remedy="Send the command again, unchanged: it may still be on its way, or its receipt be pruned.",
        )
    return ReceiptView(actor, action, row.digest, json.loads(row.answer), row.created_at)


def _beside(job_id: str, name: str, after: Cursor | None, limit: int) -> tuple[Listing, str]:
    fields.must_be_id(job_id, field="job")
    check_limit(limit)
    listing = Listing(name, (job_id,), (an_id,))
    (start,) = listing.position(after, FROM_OLDEST)
    return listing, start
