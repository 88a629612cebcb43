"""Jobs as the API shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from testigo.authority.cancel import How as CancelHow
from testigo.authority.explain.findings import Code
from testigo.authority.submissions import How
from testigo.rules.decide import Policy
from testigo.rules.retries import Constant, Exponential, Listed, backoff_to_json
from testigo.rules.states import Phase, State
from testigo.rules.transitions import EventType
from testigo.web.api.jobs.asked import BackoffShape
from testigo.web.api.shapes import Moment, Shape

__all__ = [
    "BatchAnswer",
    "CancelAnswer",
    "ErrorShape",
    "ExplanationShape",
    "FindingShape",
    "ForgetAnswer",
    "JobShape",
    "JobSummaryShape",
    "LateResultShape",
    "LineageShape",
    "LogLineShape",
    "LogShape",
    "OwnerShape",
    "ProgressShape",
    "RelatedShape",
    "RetryAnswer",
    "RunShape",
    "RunsShape",
    "SubmitAnswer",
    "TermsShape",
    "TombstoneShape",
    "UnblockAnswer",
]


class JobSummaryShape(Shape):
    """A job as a listing shows it."""

    id: str
    queue: str
    kind: str
    state: State
    phase: Phase
    """The state in coarser words."""
    reason: str | None
    """The stable word for why it ended or is blocked."""
    client: str
    key: str | None
    tags: tuple[str, ...]
    priority: int
    revision: int
    epoch: int
    """How often it was granted to a worker."""
    failures: int
    losses: int
    attempts: int
    created_at: Moment
    due_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    agent: str | None
    """Who owns it."""
    error_code: str | None
    """The last failure's."""
    error_message: str | None
    """The same, cut to 200 characters; null for who may not see documents."""
    successor: str | None
    """The job that took its place."""


class OwnerShape(Shape):
    """Who holds a job: the lease, and the session that it was granted to."""

    lease_id: str
    session_id: str
    agent: str
    session_epoch: int
    session_state: str
    leased_at: Moment
    started_at: Moment | None


class ErrorShape(Shape):
    """The last failure. Message and detail are a handler's words: null for who may not see documents."""

    code: str | None
    message: str | None
    detail: str | None


class ProgressShape(Shape):
    """How far the last run that told of it has come, in its own unit."""

    epoch: int
    done: float
    total: float | None
    note: str | None
    """The run's words; null for who may not see documents."""
    at: Moment
    eta_seconds: float | None
    """How many seconds after `at` it will be done, if it goes on as it did."""


def _as_json(value: object) -> object:
    return backoff_to_json(value) if isinstance(value, Constant | Listed | Exponential) else value


class TermsShape(Shape):
    """How a job waits between its tries, and how much waiting and cost its contract allows."""

    backoff: Annotated[BackoffShape, BeforeValidator(_as_json)]
    delay_limit_seconds: float | None
    cost_limit: float | None


class JobShape(Shape):
    """A job as it stands. Its revision is the answer's ETag.

    Payload, checkpoint and output have routes of their own, which answer the exact text.
    """

    id: str
    queue: str
    kind: str
    stream: str
    client: str
    key: str | None
    tags: tuple[str, ...]
    supersedes: str | None
    """The job whose place it took."""
    successor: str | None
    """The job that took its place."""
    priority: int
    created_at: Moment
    start_by: Moment | None
    finish_by: Moment | None
    attempts: int
    crash_limit: int
    timeout_seconds: float
    terms: TermsShape
    full_events: bool
    state: State
    phase: Phase
    """The state in coarser words."""
    reason: str | None
    """The stable word for why it ended or is blocked; null for who may not see documents where a handler worded it."""
    unadmitted: bool
    """No stream has told of it yet."""
    is_parent: bool
    revision: int
    epoch: int
    failures: int
    losses: int
    releases: int
    waited_seconds: float
    cost: float
    ready_at: Moment
    due_at: Moment | None
    started_at: Moment | None
    finished_at: Moment | None
    owner: OwnerShape | None
    limitations: tuple[str, ...]
    error: ErrorShape | None
    payload_bytes: int
    checkpoint_bytes: int | None
    output_bytes: int | None
    trace: str | None
    progress: ProgressShape | None
    redacted: bool
    """What the job holds, and what handlers worded, is not shown to who asks."""


class SubmitAnswer(Shape):
    """What became of a submission: the job that the caller now has."""

    job: str
    how: How


class BatchAnswer(Shape):
    """What became of each job of a batch, in the order given."""

    jobs: tuple[SubmitAnswer, ...]
    replayed: bool
    """An earlier request with the same Idempotency-Key was answered so; nothing was done by this one."""


class CancelAnswer(Shape):
    """What a cancel did, and where the job stands now."""

    job: str
    how: CancelHow
    state: State


class RetryAnswer(Shape):
    """The job that takes the old one's place."""

    job: str
    supersedes: str


class UnblockAnswer(Shape):
    """The job that is back at work."""

    job: str


class ForgetAnswer(Shape):
    """The job that is gone; its tombstone stays."""

    job: str


class FindingShape(Shape):
    """One thing that is so: a code for machines, a sentence for people, and the facts behind it."""

    code: Code
    text: str
    facts: dict[str, Any]
    until: Moment | None
    """When it ends by itself, where that is known."""


class ExplanationShape(FindingShape):
    """Why a job does not run and when it will; or that it runs, or how it ended."""

    job: str
    state: State
    blockers: tuple[FindingShape, ...]
    """All that is in its way, in the order of what must happen next."""
    redacted: bool


class RunShape(Shape):
    """One execution of a job, as far as its events tell."""

    epoch: int
    agent: str
    leased_at: Moment | None
    started_at: Moment | None
    ended_at: Moment | None
    how: EventType | None
    """The type of the event that ended it; null while it goes on."""
    ending: dict[str, Any] | None
    """What that event tells."""


class RunsShape(Shape):
    """Runs in the order of their epochs."""

    items: tuple[RunShape, ...]
    next: str | None
    redacted: bool


class LogLineShape(Shape):
    """One line that a run logged, as its handler wrote it."""

    epoch: int
    n: int
    at: Moment
    level: str
    text: str


class LogShape(Shape):
    """Lines of a job's log, in their order."""

    items: tuple[LogLineShape, ...]
    next: str | None
    """The address of what is logged after these lines: null where there is nothing more now."""
    after: str
    """The place of the last line, from which to ask again later."""
    dropped: int
    """Lines of the last run that were not kept."""


class LateResultShape(Shape):
    """What was reported without a lease: evidence that changed nothing."""

    id: str
    job: str
    epoch: int
    lease_id: str
    session_id: str
    outcome: str
    note: str | None
    document_bytes: int | None
    document: str | None
    """The exact JSON text, for who may see documents and asks for it."""
    found_state: State
    at: Moment
    redacted: bool


class TombstoneShape(Shape):
    """What was taken out of a job, or that the job was deleted: by whom, why, and the digest of what is gone."""

    id: str
    job: str
    what: str
    state: State
    digest: str
    actor: str
    action: str
    note: str
    at: Moment


class RelatedShape(Shape):
    """Another job, and the state that it is in or was deleted in."""

    job: str
    state: State | None
    pruned: bool
    policy: Policy | None
    closed: State | None
    """How the parent ended; null while the child waits for it."""


class LineageShape(Shape):
    """What a job superseded, waits for, and is waited for by."""

    job: str
    superseded: tuple[RelatedShape, ...]
    successors: tuple[RelatedShape, ...]
    parents: tuple[RelatedShape, ...]
    children: tuple[RelatedShape, ...]
    more: tuple[str, ...]
    """The lists that go on beyond `limit`."""
