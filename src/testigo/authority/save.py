"""save: a checkpoint that is durable before the call returns (spec B-12, P-04, P-15, field case R36).

Saves of one lease are numbered; one applies only if its number is higher than the last, so that a
save that was overtaken on the way does not undo a later one.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import SessionAction
from testigo.authority.receipts import digest_of, once, outlived
from testigo.authority.start import Held
from testigo.errors import EpochStale, LeaseLost
from testigo.rules import fields
from testigo.rules.documents import Document, must_be_document
from testigo.rules.identity import content_digest
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Saved", "save"]


class Saved(NamedTuple):
    """Whether this checkpoint is the one that counts, and the job's revision with it.

    `superseded` says that a later save of the same lease was there first.
    """

    revision: int
    superseded: bool


_SAVE = Statement(
    """
    WITH saved AS (
        UPDATE testigo.job j
        SET checkpoint = :checkpoint, checkpoint_n = :number, revision = j.revision + 1
        FROM testigo.session s
        WHERE j.id = CAST(:job AS uuid)
          AND j.lease_id IS NOT DISTINCT FROM CAST(:lease AS uuid)
          AND j.session_id IS NOT DISTINCT FROM s.id
          AND j.epoch = :epoch
          AND j.checkpoint_n < :number
          AND s.id = CAST(:session AS uuid) AND s.state IN ('open', 'draining') AND s.low_water <= :n
        RETURNING j.revision
    )
    INSERT INTO testigo.session_receipt (session_id, n, ordinal, digest, answer)
    SELECT s.id, :n, 0, :digest, json_build_object('revision', (SELECT revision FROM saved))
    FROM testigo.session s
    WHERE s.id = CAST(:session AS uuid) AND s.state IN ('open', 'draining') AND s.low_water <= :n
    RETURNING answer
    """
)

_HELD = Statement(
    """
    SELECT revision, epoch,
           epoch = :epoch AND lease_id IS NOT DISTINCT FROM CAST(:lease AS uuid)
               AND session_id IS NOT DISTINCT FROM CAST(:session AS uuid) AS held
    FROM testigo.job
    WHERE id = CAST(:job AS uuid)
    """
)


@single_statement
def save(c: Connection, held: Held, checkpoint: Document, *, number: int, action: SessionAction) -> Saved:
    """Keep a checkpoint; `number` counts the saves of this lease from 1.

    Raises `LeaseLost` when the lease is not held any more, `EpochStale` when another run has begun:
    nothing was saved.
    """
    fields.fence(*held, field="held")  # SQL finds a lease that is None where nobody holds one
    fields.whole(number, field="number", low=1, high=fields.INTEGER_MAX)
    must_be_document(checkpoint, field="checkpoint")
    digest = digest_of(action, "save", [held, number, content_digest(checkpoint)])
    parameters = {
        "job": held.job_id,
        "lease": held.lease_id,
        "epoch": held.epoch,
        "checkpoint": checkpoint,
        "number": number,
        "session": action.session_id,
        "n": action.n,
        "digest": digest,
    }

    def send() -> str | None:
        rows = _SAVE.fetch(c, parameters)
        return str(rows[0][0]) if rows else None

    receipt = once(c, action, digest, send) or outlived(c, action, digest)
    revision: int | None = receipt.answer["revision"]
    if revision is not None:
        return Saved(revision, superseded=False)
    row = _HELD.row(c, job=held.job_id, lease=held.lease_id, epoch=held.epoch, session=action.session_id)
    if row is not None and row.epoch > held.epoch:
        raise EpochStale(
            f"The job {held.job_id} was granted again: epoch {row.epoch}, not {held.epoch}.", job=held.job_id
        )
    if row is None or not row.held:
        raise LeaseLost(f"The lease of job {held.job_id} is lost; the checkpoint was not saved.", job=held.job_id)
    return Saved(row.revision, superseded=True)
