"""settle_deferred: the slow path of a settle, in a transaction of its own (spec P-09, P-15, B-16).

It locks the job, reads it, and decides by the rules: under a live lease anything that the holder
reports is accepted, whatever happened to the job meanwhile. Without one nothing is changed, and
a result that was reported is kept as a late one, as evidence. Each row has a receipt of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, SessionAction, new_id
from testigo.authority.edges import children_of
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.receipts import digest_of, expired
from testigo.authority.settle import Settlement, check_each, content
from testigo.authority.submissions import How as Submission
from testigo.authority.submit import submit_within
from testigo.authority.write import Change, error_text, write
from testigo.errors import ActionIdCollision, KeyConflict
from testigo.rules import decide, fields
from testigo.rules.decide import Move, Position
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, Succeed, Yield, is_result
from testigo.rules.retries import backoff_to_json
from testigo.rules.states import LEASED, State
from testigo.rules.text import tidy
from testigo.rules.transitions import EventType
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = ["How", "SettledRow", "SettledRows", "settle_deferred"]


class How(StrEnum):
    """What became of a deferred row."""

    ACCEPTED = "accepted"
    LATE = "late"
    """The lease was not held any more: nothing was changed, and a result is kept as evidence (LEASE_LOST)."""
    GONE = "gone"
    """The job was pruned."""


class SettledRow(NamedTuple):
    """The answer to one deferred row: what became of it, and the state that the job is in."""

    job_id: JobId
    how: How
    state: State | None


class SettledRows(NamedTuple):
    """The answers to deferred rows, in the order given; `wakes` are the queues in which there is work again."""

    rows: tuple[SettledRow, ...]
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Document:
    """An outcome as it is written: which documents, and the words for people."""

    output: Document | None = None
    checkpoint: Document | None = None
    error: str | None = None
    limitations: tuple[str, ...] | None = None


_SESSION = Statement(
    """
    SELECT state IN ('open', 'draining') AS is_open, low_water
    FROM testigo.session
    WHERE id = CAST(:session AS uuid)
    """
)

_FOUND = Statement(
    """
    SELECT ordinal, digest, answer
    FROM testigo.session_receipt
    WHERE session_id = CAST(:session AS uuid) AND n = :n AND ordinal = ANY (CAST(:ordinals AS integer[]))
    """
)

_FILE = Statement(
    """
    INSERT INTO testigo.session_receipt (session_id, n, ordinal, digest, answer)
    SELECT CAST(:session AS uuid), :n, r.ordinal, r.digest, r.answer
    FROM unnest(CAST(:ordinals AS integer[]), CAST(:digests AS text[]), CAST(:answers AS text[]))
             AS r(ordinal, digest, answer)
    """
)

_KEEP = Statement(
    """
    INSERT INTO testigo.late (id, job_id, epoch, lease_id, session_id, outcome, document, note, found_state, at)
    VALUES (CAST(:id AS uuid), CAST(:job AS uuid), :epoch, CAST(:lease AS uuid), CAST(:session AS uuid),
            :outcome, :document, :note, CAST(:state AS testigo.job_state), now())
    """
)


def settle_deferred(c: Connection, rows: Sequence[tuple[int, Settlement]], *, action: SessionAction) -> SettledRows:
    """Settle rows of a batch that were deferred: each is named by its place in the batch of `action`.

    The rows share this transaction and its locks, in the one order (jobs, children, heads). Raises
    what the rules refuse, `ReceiptExpired` for an n that is past, and `KeyConflict` when a child's key
    names other work; a lost lease is an answer, not an error.
    """
    for at, (place, _) in enumerate(rows):
        fields.whole(place, field=f"rows[{at}].place", low=0, high=LIMITS.batch_max - 1)
    check_each([settlement for _, settlement in rows], "rows")
    ids = [settlement.job_id for _, settlement in rows]
    jobs = lock(c, [*ids, *children_of(c, ids)])
    digests = {place: digest_of(action, "settle_deferred", content(settlement)) for place, settlement in rows}
    # The receipts are read under the jobs' locks: a resend in flight has filed its own by then.
    answers, wakes = _filed(c, action, digests)
    fresh = [(place, settlement) for place, settlement in rows if place not in answers]
    session = _SESSION.row(c, session=action.session_id)
    if fresh and session is not None and action.n < session.low_water:
        raise expired(action.id)
    is_open = session is not None and session.is_open
    changes: list[Change] = []
    for place, settlement in fresh:
        job = jobs.get(settlement.job_id)
        if job is None:
            answers[place] = SettledRow(settlement.job_id, How.GONE, None)
        elif is_open and _holds(settlement, job, action):
            _submit_children(c, settlement, replace(action, ordinal=place + 1))
            changes.append(_change(settlement, job))
            answers[place] = SettledRow(job.id, How.ACCEPTED, changes[-1].move.target)
        else:
            if is_result(settlement.outcome):
                _keep_late(c, settlement, job, action)
            answers[place] = SettledRow(job.id, How.LATE, job.state)
    woken = write(c, changes, action=action)
    _file(c, action, digests, {place: answers[place] for place, _ in fresh}, woken)
    return SettledRows(tuple(answers[place] for place, _ in rows), tuple(sorted({*wakes, *woken})))


def _filed(c: Connection, action: SessionAction, digests: Mapping[int, str]) -> tuple[dict[int, SettledRow], set[str]]:
    """The answers that an earlier send has had, and the queues that it named to be woken."""
    found = _FOUND.rows(c, session=action.session_id, n=action.n, ordinals=[place + 1 for place in digests])
    answers: dict[int, SettledRow] = {}
    wakes: set[str] = set()
    for row in found:
        place = row.ordinal - 1
        if row.digest != digests[place]:
            raise ActionIdCollision("This row of the batch was settled before with other content.", row=place)
        job_id, how, state, woken = json.loads(row.answer)
        answers[place] = SettledRow(JobId(job_id), How(how), State(state) if state else None)
        wakes.update(woken)
    return answers, wakes


def _file(
    c: Connection,
    action: SessionAction,
    digests: Mapping[int, str],
    answers: Mapping[int, SettledRow],
    wakes: Sequence[str],
) -> None:
    if not answers:
        return
    _FILE.rows(
        c,
        session=action.session_id,
        n=action.n,
        ordinals=[place + 1 for place in answers],
        digests=[digests[place] for place in answers],
        answers=[json.dumps([*answer, wakes]) for answer in answers.values()],
    )


def _submit_children(c: Connection, settlement: Settlement, action: SessionAction) -> None:
    """Accept what the run submitted with its end, before it: `admit` tells of it (spec P-25)."""
    if not settlement.children:
        return
    receipt = submit_within(c, settlement.children, action=Action(action.actor, action.id))
    for child, row in zip(settlement.children, receipt.jobs, strict=True):
        if row.how is Submission.CONFLICT:
            raise KeyConflict(
                f"The key {child.key!r} of a child already names other work, so its parent's end is refused with it.",
                field="children",
                job=row.job_id,
            )


def _change(settlement: Settlement, job: LockedJob) -> Change:
    position = replace(job.position, cost=job.position.cost + settlement.cost)
    move = decide.settle(position, settlement.outcome, draw=random.random(), now=job.now)
    document = _document(settlement)
    return Change(
        job,
        move,
        {"epoch": job.epoch, **settlement.facts.told(), **_told(settlement.outcome), **_tries(position, move)},
        output=document.output,
        limitations=document.limitations,
        error=document.error,
        checkpoint=document.checkpoint,
        cost=settlement.cost,
    )


def _holds(settlement: Settlement, job: LockedJob, action: SessionAction) -> bool:
    lease = settlement.lease
    owner = (job.lease_id, job.epoch, job.session_id)
    return job.state in LEASED and owner == (lease.lease_id, lease.epoch, action.session_id)


def _keep_late(c: Connection, settlement: Settlement, job: LockedJob, action: SessionAction) -> None:
    document = _document(settlement)
    _KEEP.rows(
        c,
        id=new_id(),
        job=job.id,
        epoch=settlement.lease.epoch,
        lease=settlement.lease.lease_id,
        session=action.session_id,
        outcome=type(settlement.outcome).__name__.lower(),
        document=document.output or document.checkpoint,
        note=document.error,
        state=str(job.state),
    )


def _document(settlement: Settlement) -> _Document:
    match settlement.outcome:
        case Succeed(output):
            return _Document(output=output)
        case Degrade(output, limitations):
            return _Document(output=output, limitations=limitations)
        case Fail(code, message, detail):
            return _Document(error=error_text(code, message, detail))
        case Lose(code, message):
            return _Document(error=error_text(code, message))
        case Block(checkpoint=checkpoint) | Release(checkpoint=checkpoint):
            return _Document(checkpoint=checkpoint)
        case Yield(checkpoint):
            return _Document(checkpoint=checkpoint)


def _told(outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Degrade(_, limitations):
            return {"limitations": list(limitations)}
        case Fail(code, message):
            return {"code": tidy(code), "message": tidy(message)}
        case Lose(code, message):
            return {"note": tidy(f"{code}: {message}")}
        case Block(_, needs):
            return {"needs": tidy(needs)}
        case Release(reason):
            return {"note": tidy(reason)}
        case _:
            return {}


def _tries(before: Position, move: Move) -> dict[str, object]:
    """The retry policy that applied to a failure (spec A-14)."""
    if move.event is not EventType.FAILED or move.losses:
        return {}
    failures = before.failures + move.failures
    return {"failures": failures, "attempts": before.attempts, "backoff": backoff_to_json(before.backoff)}
