"""What can be done to jobs: the right that it needs, when it applies, and in which words it is asked.

One table, read by the buttons of every page, by the pages that ask whether it is meant, and by what does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import Action, JobId
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.read import JobView
from testigo.authority.reprocess import Reprocessed, reprocess
from testigo.authority.unblock import unblock
from testigo.operations import Verb
from testigo.rules.states import LEASED, TERMINAL, State
from testigo.web.panel.words import Words

__all__ = ["ACTS", "Act", "command", "effects", "offered", "result_id"]


@dataclass(frozen=True, slots=True)
class Act:
    """One verb in words: as a button, as a question for one job and for many, and whether it can be taken back."""

    right: Right
    label: str
    one: str
    many: str
    button: str
    button_many: str
    back: str
    many_effect: str
    danger: bool = False
    needs_reason: bool = False


ACTS: Mapping[Verb, Act] = {
    Verb.RETRY: Act(
        right=Right.RETRY,
        label="Retry",
        one="Retry this job?",
        many="Retry {n} job? | Retry {n} jobs?",
        button="Retry the job",
        button_many="Retry {n} job | Retry {n} jobs",
        back="A retry that was not meant can be cancelled: the new job is a job like any other.",
        many_effect="For each, a new job with the same payload and contract takes its place. The old ones stay as "
        "they are, with their history, and leave the list of failed jobs when the new ones succeed.",
    ),
    Verb.CANCEL: Act(
        right=Right.CANCEL,
        label="Cancel",
        one="Cancel this job?",
        many="Cancel {n} job? | Cancel {n} jobs?",
        button="Cancel the job",
        button_many="Cancel {n} job | Cancel {n} jobs",
        back="It cannot be taken back. Cancelled work can be done again by a retry, as a new job.",
        many_effect="Those that wait end at once. Of those that run, the workers are asked to stop; each ends as "
        "cancelled, or with the outcome that comes first.",
        danger=True,
        needs_reason=True,
    ),
    Verb.UNBLOCK: Act(
        right=Right.UNBLOCK,
        label="Unblock",
        one="Unblock this job?",
        many="Unblock {n} job? | Unblock {n} jobs?",
        button="Unblock the job",
        button_many="Unblock {n} job | Unblock {n} jobs",
        back="If it still lacks what it needs, it blocks again.",
        many_effect="They are ready again, and run when slots are free.",
    ),
    Verb.FORGET: Act(
        right=Right.FORGET,
        label="Forget",
        one="Forget this job?",
        many="Forget {n} job? | Forget {n} jobs?",
        button="Forget the job",
        button_many="Forget {n} job | Forget {n} jobs",
        back="It cannot be taken back: what the job held is gone.",
        many_effect="Payloads, outputs, errors and logs are deleted now instead of after their time. A tombstone "
        "of each remains, and its events as long as their stream keeps them.",
        danger=True,
        needs_reason=True,
    ),
}
"""What can be done to jobs, in the order in which it is offered."""


def offered(job: JobView, who: Who) -> tuple[Verb, ...]:
    """What somebody of this role can do to a job as it stands."""
    return tuple(verb for verb, act in ACTS.items() if who.may(act.right) and _applies(verb, job))


def effects(verb: Verb, job: JobView, t: Words) -> tuple[str, ...]:
    """What will happen to a job as it stands, each thing a sentence."""
    return tuple(_effects(verb, job, t))


def command(verb: Verb, job_id: JobId, reason: str, action: Action) -> Callable[[Connection], Any]:
    """The authority's command that does it to one job."""

    def sent(c: Connection) -> Any:
        match verb:
            case Verb.RETRY:
                return reprocess(c, job_id, note=reason, action=action)
            case Verb.CANCEL:
                return cancel(c, [job_id], note=reason, action=action)
            case Verb.UNBLOCK:
                return unblock(c, [job_id], note=reason, action=action)
            case Verb.FORGET:
                return forget(c, [job_id], reason, action=action)

    return sent


def result_id(job_id: JobId, answer: object) -> JobId:
    """The job that shows what was done: the new one of a retry, else the job itself."""
    return answer.job_id if isinstance(answer, Reprocessed) else job_id


def _applies(verb: Verb, job: JobView) -> bool:
    match verb:
        case Verb.RETRY:
            return job.state in TERMINAL and job.successor is None
        case Verb.CANCEL:
            return job.state not in TERMINAL and job.state is not State.CANCELLING
        case Verb.UNBLOCK:
            return job.state is State.BLOCKED_BY_QUALITY
        case Verb.FORGET:
            return job.state in TERMINAL


def _effects(verb: Verb, job: JobView, t: Words) -> Iterator[str]:
    match verb:
        case Verb.RETRY:
            yield t("A new job with the same payload and contract is made, and takes the place of this one.")
            yield t("It is given up after {n} failure. | It is given up after {n} failures.", n=job.attempts)
            yield t("This job stays as it is, with its history.")
            if job.key:
                yield t("The key {key} names the new job from then on.", key=job.key)
            if job.is_parent:
                yield t("Jobs that wait for this one wait for the new one.")
        case Verb.CANCEL if job.state in LEASED:
            yield t("A worker has it: it is asked to stop. The job ends as cancelled, or with the outcome that "
                    "comes first.")  # fmt: skip
        case Verb.CANCEL:
            yield t("It ends at once, as cancelled: no worker has it.")
        case Verb.UNBLOCK:
            yield t("It is ready again, and runs when a slot is free.")
        case Verb.FORGET:
            yield t("Its payload, output, error and log are deleted now instead of after their time.")
            yield t("A tombstone of it remains, and its events as long as their stream keeps them.")
    if verb is Verb.CANCEL and job.is_parent:
        yield t("Each job that waits for it does what its own policy says: it fails, is cancelled, waits on, or runs.")
