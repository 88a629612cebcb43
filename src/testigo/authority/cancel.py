"""cancel: end what nobody owns, and ask the holder of what is owned (spec D-20, Promise 7).

The request is persisted with the job; it is never lost, and ends in exactly one terminal state:
cancelled, or the outcome of the holder who was first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.admit import admit_these
from testigo.authority.batch import check_batch
from testigo.authority.jobs import existing
from testigo.authority.receipts import digest_of, exactly_once
from testigo.authority.write import Change, write
from testigo.rules import decide
from testigo.rules.discreet import discreet
from testigo.rules.states import TERMINAL, State

__all__ = ["Cancelled", "CancelledJob", "How", "cancel", "cancel_within"]


class How(StrEnum):
    """What a cancel did to one job."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    """It runs: its holder is asked to stop, and the job ends when the holder answers or is gone."""
    ENDED = "ended"
    """It had ended before; nothing changed."""


class CancelledJob(NamedTuple):
    """The answer for one job: what the cancel did, and the state the job is in now."""

    job_id: JobId
    how: How
    state: State


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The receipt of a cancel, a row per job in the order given.

    `wakes` name the sessions that hold what is to stop, as `session:<id>`: their keepers listen to that.
    """

    jobs: tuple[CancelledJob, ...]
    replayed: bool
    wakes: tuple[str, ...] = ()


def cancel(c: Connection, ids: Sequence[JobId], *, note: str = "", action: Action) -> Cancelled:
    """Cancel these jobs, each as its state allows; `note` says why, for people.

    Raises `NotFound` when one does not exist: then none is cancelled.
    """
    check_batch(ids, "jobs")
    digest = digest_of(action, "cancel", [list(ids), note])

    def body() -> dict[str, object]:
        answers, wakes = cancel_within(c, ids, note=note, action=action)
        return {"jobs": answers, "wakes": wakes}

    receipt = exactly_once(c, action, digest, body)
    rows = receipt.answer["jobs"]
    jobs = tuple(CancelledJob(JobId(job_id), How(how), State(state)) for job_id, how, state in rows)
    return Cancelled(jobs, receipt.replayed, tuple(receipt.answer["wakes"]))


def cancel_within(
    c: Connection, ids: Sequence[JobId], *, note: str, action: Action
) -> tuple[list[CancelledJob], list[str]]:
    """The same as a part of a command that keeps its own receipt: a row per job, and whom to wake."""
    jobs, changes = admit_these(c, ids)
    told = {"note": discreet(note)} if note else {}
    answers: dict[JobId, CancelledJob] = {}
    for job in existing(jobs, ids):
        if job.state in TERMINAL:
            answers[job.id] = CancelledJob(job.id, How.ENDED, job.state)
        elif job.state is State.CANCELLING:
            answers[job.id] = CancelledJob(job.id, How.REQUESTED, job.state)
        else:
            move = decide.cancel(job.position)
            changes.append(Change(job, move, told))
            how = How.REQUESTED if move.target is State.CANCELLING else How.CANCELLED
            answers[job.id] = CancelledJob(job.id, how, move.target)
    write(c, changes, action=action)
    holders = {jobs[job_id].session_id for job_id, answer in answers.items() if answer.how is How.REQUESTED}
    return [answers[job_id] for job_id in ids], sorted(f"session:{holder}" for holder in holders)
