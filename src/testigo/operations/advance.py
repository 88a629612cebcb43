"""advance: do the next jobs of an operation, by the very commands that would be sent for each (spec P-07 to P-09).

A step is one transaction: what it does to the jobs, and what it tells of them, commit together. So whoever is
killed between two steps, or in one, leaves nothing half done, and anybody goes on. A step that fails is undone, told by
its operation and done again later and later: the others go on meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row

from testigo.access.standing import must_still
from testigo.authority.actions import Action, JobId
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.reprocess import reprocess
from testigo.authority.unblock import unblock
from testigo.errors import Conflict, Denied, Error, Missing, NotFound, StateConflict, Terminal
from testigo.operations.model import RIGHT_OF, Advanced, OperationId, Outcome, Verb
from testigo.operations.selection import QUALIFIED
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.states import TERMINAL, State
from testigo.settings import LIMITS
from testigo.store.command import savepoint
from testigo.store.failures import is_retryable, reason_of
from testigo.store.sql import Statement

__all__ = ["advance"]

_log = logging.getLogger("testigo.operations")

# Whoever has an operation in hand has it until the end of its step; another takes another.
_TAKE = Statement(
    """
    SELECT CAST(id AS text) AS id, verb, reason, actor, total, failures, done + refused AS place, now() AS now
    FROM testigo.operation
    WHERE state = 'running' AND next_at <= clock_timestamp()
    ORDER BY next_at, id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
    """
)

_NEXT = Statement(
    """
    SELECT n, CAST(job_id AS text) AS job_id
    FROM testigo.operation_item
    WHERE operation_id = CAST(:id AS uuid) AND n > :place
    ORDER BY n
    LIMIT :limit
    """
)

_TELL = Statement(
    """
    UPDATE testigo.operation_item i
    SET outcome = t.outcome, state = t.state, code = t.code, message = t.message, successor_id = t.successor
    FROM unnest(CAST(:ns AS integer[]), CAST(:outcomes AS text[]), CAST(:states AS testigo.job_state[]),
                CAST(:codes AS text[]), CAST(:messages AS text[]), CAST(:successors AS uuid[]))
             AS t(n, outcome, state, code, message, successor)
    WHERE i.operation_id = CAST(:id AS uuid) AND i.n = t.n
    """
)

_ADVANCE = Statement(
    """
    UPDATE testigo.operation
    SET done = done + :done,
        refused = refused + :refused,
        advanced_at = clock_timestamp(),
        next_at = clock_timestamp(),
        failures = 0,
        hindrance = NULL,
        state = CASE WHEN done + refused + :done + :refused < total THEN 'running' ELSE 'done' END,
        ended_at = CASE WHEN done + refused + :done + :refused < total THEN NULL ELSE now() END
    WHERE id = CAST(:id AS uuid)
    """
)

_HINDER = Statement(
    """
    UPDATE testigo.operation
    SET failures = failures + 1,
        hindrance = :hindrance,
        advanced_at = clock_timestamp(),
        next_at = clock_timestamp() + :wait * interval '1 second'
    WHERE id = CAST(:id AS uuid)
    """
)

_REFUSE = Statement(
    """
    UPDATE testigo.operation
    SET state = 'stopped', ended_at = now(), hindrance = :hindrance, advanced_at = clock_timestamp()
    WHERE id = CAST(:id AS uuid)
    """
)

_FIRST_SECONDS = 2.0
_CAP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class _Told:
    """What became of one job."""

    state: State | None
    refusal: Error | None = None
    successor: JobId | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """One step: in whose name and why, and the queues and sessions that it wakes."""

    action: Action
    reason: str
    wakes: set[str]


def advance(c: Connection, limit: int = 500) -> Advanced | None:
    """Do the next jobs of the operation that was left alone for longest: at most `limit`, of a retry one.

    Each is done by its own command, as it is now: one that has changed since it was frozen and still qualifies
    is done, and one that does not is refused with the code and words of that command. An operation whose actor has no
    right to it any more is stopped. Returns None when nothing is to be done of any operation now, or others have every
    one of them in hand. Repeating it goes on, so it needs no receipt.
    """
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    taken = _TAKE.row(c)
    if taken is None:
        return None
    try:
        with savepoint(c):
            return _advance(c, taken, limit)
    except Denied as refusal:
        _REFUSE.rows(c, id=taken.id, hindrance=refusal.message)
        return Advanced(OperationId(taken.id), 0, 0, more=False)
    except Exception as failure:
        if is_retryable(failure):  # the whole of it is sent again
            raise
        _hinder(c, taken, failure)
        return Advanced(OperationId(taken.id), 0, 0, more=True)


def _advance(c: Connection, taken: Row[Any], limit: int) -> Advanced:
    verb = Verb(taken.verb)
    must_still(c, taken.actor, RIGHT_OF[verb])
    # A retry holds streams when it is over; the next one of the same transaction would lock jobs after them.
    rows = _NEXT.rows(c, id=taken.id, place=taken.place, limit=1 if verb is Verb.RETRY else limit)
    action = Action(taken.actor, f"{taken.id}:{taken.place + 1}", taken.now)
    step = _Step(action, taken.reason, set())
    answers = _perform(c, verb, [JobId(row.job_id) for row in rows], step)
    _tell(c, taken.id, rows, answers)
    refused = sum(answer.refusal is not None for answer in answers.values())
    done = len(rows) - refused
    _ADVANCE.rows(c, id=taken.id, done=done, refused=refused)
    more = taken.place + len(rows) < taken.total
    return Advanced(OperationId(taken.id), done, refused, more, tuple(sorted(step.wakes)))


def _hinder(c: Connection, taken: Row[Any], failure: Exception) -> None:
    """Tell what a step failed by, and let the next one wait: twice as long as the last one, up to ten minutes."""
    wait = min(_CAP_SECONDS, _FIRST_SECONDS * 2.0 ** min(taken.failures, 16))
    told = discreet(f"{type(failure).__name__}: {reason_of(failure)}")
    level = logging.DEBUG if taken.failures else logging.WARNING
    _log.log(level, "operation %s: a step failed and is done again in %g s: %s", taken.id, wait, told)
    _HINDER.rows(c, id=taken.id, hindrance=told, wait=wait)


def _perform(c: Connection, verb: Verb, ids: Sequence[JobId], step: _Step) -> dict[JobId, _Told]:
    """What becomes of these jobs. Those that do not qualify are refused under their locks, the rest is done at once."""
    jobs = lock(c, ids)
    answers = {job_id: _refused(verb, jobs.get(job_id)) for job_id in ids}
    fit = [job_id for job_id, answer in answers.items() if answer.refusal is None]
    if fit:
        answers |= _VERBS[verb](c, fit, jobs, step)
    return answers


def _refused(verb: Verb, job: LockedJob | None) -> _Told:
    if job is None:
        return _Told(None, NotFound("The job is gone.", field="job"))
    if job.state in QUALIFIED[verb]:
        return _Told(job.state)
    kind = Terminal if job.state in TERMINAL else StateConflict
    return _Told(job.state, kind(f"A job that is {job.state} cannot be {_DONE[verb]}.", field="job"))


def _cancel(c: Connection, ids: Sequence[JobId], _: Mapping[JobId, LockedJob], step: _Step) -> dict[JobId, _Told]:
    answer = cancel(c, ids, note=step.reason, action=step.action)
    step.wakes.update(answer.wakes)
    return {job.job_id: _Told(job.state) for job in answer.jobs}


def _unblock(c: Connection, ids: Sequence[JobId], _: Mapping[JobId, LockedJob], step: _Step) -> dict[JobId, _Told]:
    answer = unblock(c, ids, note=step.reason, action=step.action)
    step.wakes.update(answer.wakes)
    return {job_id: _Told(State.READY) for job_id in answer.jobs}


def _retry(c: Connection, ids: Sequence[JobId], jobs: Mapping[JobId, LockedJob], step: _Step) -> dict[JobId, _Told]:
    def one(job_id: JobId, action: Action) -> _Told:
        answer = reprocess(c, job_id, note=step.reason, action=action)
        step.wakes.update(answer.wakes)
        state = jobs[job_id].state
        return _Told(state if state in TERMINAL else State.SUPERSEDED, successor=answer.job_id)

    return _one_by_one(c, ids, jobs, step, one)


def _forget(c: Connection, ids: Sequence[JobId], jobs: Mapping[JobId, LockedJob], step: _Step) -> dict[JobId, _Told]:
    gone: set[JobId] = set()

    def one(job_id: JobId, action: Action) -> _Told:
        if job_id not in gone:  # it may have gone with the one that took its place
            gone.update(forget(c, [job_id], note=step.reason, action=action).jobs)
        return _Told(jobs[job_id].state)

    return _one_by_one(c, ids[::-1], jobs, step, one)


def _one_by_one(
    c: Connection,
    ids: Sequence[JobId],
    jobs: Mapping[JobId, LockedJob],
    step: _Step,
    one: Callable[[JobId, Action], _Told],
) -> dict[JobId, _Told]:
    """Each by itself: what the command refuses is undone alone, and told with its words."""
    answers = {}
    for job_id in ids:
        try:
            with savepoint(c):
                answers[job_id] = one(job_id, replace(step.action, id=f"{step.action.id}:{job_id}"))
        except (Conflict, Missing) as refusal:
            answers[job_id] = _Told(jobs[job_id].state, refusal)
    return answers


_DONE = {
    Verb.CANCEL: "cancelled",
    Verb.RETRY: "done again",
    Verb.UNBLOCK: "unblocked",
    Verb.FORGET: "forgotten",
}

_VERBS: Mapping[Verb, Callable[[Connection, Sequence[JobId], Mapping[JobId, LockedJob], _Step], dict[JobId, _Told]]] = {
    Verb.CANCEL: _cancel,
    Verb.RETRY: _retry,
    Verb.UNBLOCK: _unblock,
    Verb.FORGET: _forget,
}


def _tell(c: Connection, operation_id: str, rows: Sequence[Row[Any]], answers: Mapping[JobId, _Told]) -> None:
    told = [answers[JobId(row.job_id)] for row in rows]
    _TELL.rows(
        c,
        id=operation_id,
        ns=[row.n for row in rows],
        outcomes=[str(Outcome.DONE if one.refusal is None else Outcome.REFUSED) for one in told],
        states=[None if one.state is None else str(one.state) for one in told],
        codes=[one.refusal and one.refusal.code for one in told],
        messages=[one.refusal and one.refusal.message for one in told],
        successors=[one.successor for one in told],
    )
