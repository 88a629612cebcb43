"""A job as it is asked for, and the answer to its submission (spec D-01, model.md *A job*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from testigo.authority.actions import JobId, new_id
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.decide import Policy
from testigo.rules.documents import Document, must_be_document
from testigo.rules.graph import cycle
from testigo.rules.identity import content_digest, request_digest
from testigo.rules.retries import Backoff, backoff_to_json
from testigo.settings import LIMITS

__all__ = ["How", "NewJob", "Submitted", "SubmittedJob", "check", "content", "digest_of_request"]


@dataclass(slots=True)
class NewJob:
    """A job as a caller asks for it; what is None was not given and takes the contract's default.

    It is a value: what was sent is not changed any more. It is not frozen because to make a frozen one
    takes four times as long, which was a tenth of a submission.

    `payload` is exact JSON text (`rules.documents.encode` or `parse`). `key` makes the submission
    idempotent: unique together with `client` and `kind`. `run_at` is the earliest start, `start_by`
    the latest, `finish_by` the end of all tries. `policy` says what becomes of the job when one of
    its `parents` can never succeed. `trace` is the W3C traceparent in which it was asked for; whether two
    submissions ask for the same does not hang on it. The id is made with the value, and resent with it.
    """

    kind: str
    payload: Document = Document("null")
    queue: str = "default"
    client: str = "default"
    key: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    start_by: datetime | None = None
    finish_by: datetime | None = None
    tags: tuple[str, ...] = ()
    parents: tuple[JobId, ...] = ()
    policy: Policy = Policy.FAIL
    attempts: int | None = None
    crash_limit: int | None = None
    timeout_seconds: float | None = None
    backoff: Backoff | None = None
    delay_limit_seconds: float | None = None
    cost_limit: float | None = None
    trace: str | None = None
    id: JobId = field(default_factory=lambda: JobId(new_id()))


class How(StrEnum):
    """What became of one row of a submission."""

    ACCEPTED = "accepted"
    EXISTING = "existing"
    """Its key names a job that was asked for with the same content: that job is the answer."""
    CONFLICT = "conflict"
    """Its key names a job that was asked for with other content: nothing was submitted (KEY_CONFLICT)."""


class SubmittedJob(NamedTuple):
    """The answer to one row of a submission: the job that the caller now has, or that is in the way."""

    job_id: JobId
    how: How


@dataclass(frozen=True, slots=True)
class Submitted:
    """The receipt of a submission, a row per job in the order given.

    `wakes` names the streams whose listeners should look again once this is committed.
    """

    jobs: tuple[SubmittedJob, ...]
    replayed: bool
    wakes: tuple[str, ...] = ()


def check(jobs: Sequence[NewJob]) -> None:
    """Refuse a batch of which any row breaks a limit, before anything is written.

    Raises `Invalid` naming the row and field (`jobs[3].tags[0]`).
    """
    if not 1 <= len(jobs) <= LIMITS.batch_max:
        raise Invalid(f"A batch of {len(jobs)} jobs.", field="jobs", limit=f"1 to {LIMITS.batch_max} jobs")
    have_ids = fields.are_ids([job.id for job in jobs])
    for at, job in enumerate(jobs):
        try:
            _check_names(job.kind, job.queue, job.client)
        except TypeError:  # what the cache cannot hold is no text, and is refused as such
            _check_names.__wrapped__(job.kind, job.queue, job.client)
        if not have_ids:
            fields.must_be_id(job.id, field=f"jobs[{at}].id")
        if type(job.payload) is not Document:
            must_be_document(job.payload, field=f"jobs[{at}].payload")
        if type(job.policy) is not Policy:
            fields.member(job.policy, Policy, field=f"jobs[{at}].policy")
        if job.trace is not None:
            fields.trace(job.trace, field=f"jobs[{at}].trace")
        if has_options(job):
            _check_rest(job, f"jobs[{at}]")
    if len({job.id for job in jobs}) < len(jobs):
        raise Invalid("Two jobs of the batch have the same id.", field="jobs", remedy="Make a NewJob for each.")
    loop = cycle({job.id: job.parents for job in jobs if job.parents})
    if loop:
        raise Invalid(
            "The jobs of the batch wait for each other in a circle: " + " → ".join(loop),
            field="parents",
            remedy="Remove one of these parents.",
        )


def has_options(job: NewJob) -> bool:
    """Whether the caller gave anything that is compared besides kind, queue, client and payload."""
    return not (
        job.key is None
        and job.priority is None
        and job.run_at is None
        and job.start_by is None
        and job.finish_by is None
        and job.attempts is None
        and job.crash_limit is None
        and job.timeout_seconds is None
        and job.backoff is None
        and job.delay_limit_seconds is None
        and job.cost_limit is None
        and not job.tags
        and not job.parents
    )


def content(jobs: Sequence[NewJob]) -> list[object]:
    """What the caller of a batch gave, for the digest of the command."""
    return [
        (job.kind, job.queue, job.client, job.payload, given(job))
        if has_options(job)
        else (job.kind, job.queue, job.client, job.payload)
        for job in jobs
    ]


def given(job: NewJob) -> dict[str, object]:
    """What the caller gave besides the payload: no ids, no defaults, times as UTC text."""
    members: dict[str, object] = {
        "kind": job.kind,
        "queue": job.queue,
        "client": job.client,
        "key": job.key,
        "priority": job.priority,
        "run_at": _text(job.run_at),
        "start_by": _text(job.start_by),
        "finish_by": _text(job.finish_by),
        "tags": list(job.tags),
        "parents": list(job.parents),
        "policy": str(job.policy) if job.parents else None,
        "attempts": job.attempts,
        "crash_limit": job.crash_limit,
        "timeout_seconds": job.timeout_seconds,
        "backoff": backoff_to_json(job.backoff) if job.backoff else None,
        "delay_limit_seconds": job.delay_limit_seconds,
        "cost_limit": job.cost_limit,
    }
    return {name: value for name, value in members.items() if value not in (None, [])}


def digest_of_request(job: NewJob) -> str:
    """The digest that tells whether two submissions under one key ask for the same (spec D-01, P-06)."""
    return request_digest(given(job), content_digest(job.payload))


@lru_cache(maxsize=4096)
def _check_names(kind: str, queue: str, client: str) -> None:
    fields.name(kind, field="kind")
    fields.name(queue, field="queue")
    fields.name(client, field="client")
    if "#" in queue:
        raise Invalid("A queue's name has no '#': it marks the stripes of a queue.", field="queue")


def _check_rest(job: NewJob, at: str) -> None:
    if job.key is not None:
        fields.key(job.key, field=f"{at}.key")
    if job.priority is not None:
        fields.whole(job.priority, field=f"{at}.priority", low=-(2**31), high=2**31 - 1)
    _check_dates(job, at)
    _check_contract(job, at)
    fields.sequence(job.tags, field=f"{at}.tags", most=LIMITS.tags_max)
    for n, tag in enumerate(job.tags):
        fields.name(tag, field=f"{at}.tags[{n}]")
    fields.sequence(job.parents, field=f"{at}.parents", most=LIMITS.parents_max)
    for n, parent in enumerate(job.parents):
        fields.must_be_id(parent, field=f"{at}.parents[{n}]")


def _check_dates(job: NewJob, at: str) -> None:
    dates = [("run_at", job.run_at), ("start_by", job.start_by), ("finish_by", job.finish_by)]
    known = [(name, fields.moment(value, field=f"{at}.{name}")) for name, value in dates if value is not None]
    for (earlier, first), (later, second) in pairwise(known):
        if second < first:
            raise Invalid(f"{later} is before {earlier}.", field=f"{at}.{later}", limit=f"not before {earlier}")


def _check_contract(job: NewJob, at: str) -> None:
    for name, count in (("attempts", job.attempts), ("crash_limit", job.crash_limit)):
        if count is not None:
            fields.whole(count, field=f"{at}.{name}", low=1, high=LIMITS.attempts_max)
    if job.backoff is not None and not isinstance(job.backoff, Backoff):
        raise Invalid("A backoff is Constant, Listed or Exponential.", field=f"{at}.backoff")
    if job.timeout_seconds is not None:
        fields.seconds(job.timeout_seconds, field=f"{at}.timeout_seconds", zero=False)
    if job.delay_limit_seconds is not None:
        fields.seconds(job.delay_limit_seconds, field=f"{at}.delay_limit_seconds")
    if job.cost_limit is not None:
        fields.cost(job.cost_limit, field=f"{at}.cost_limit")


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else fields.moment(moment, field="moment").isoformat()
