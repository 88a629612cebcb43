"""What a caller sends about jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, InstanceOf, WithJsonSchema

from testigo.authority.actions import JobId
from testigo.authority.submissions import NewJob
from testigo.rules.decide import Policy
from testigo.rules.documents import Document
from testigo.rules.retries import backoff_from_json
from testigo.settings import LIMITS
from testigo.web.api.shapes import Flag, Id, Moment, Number, Shape, Whole

__all__ = [
    "BATCH_MAX",
    "ConstantShape",
    "ExponentialShape",
    "Forgetting",
    "ListedShape",
    "NewBatch",
    "NewJobShape",
    "Steering",
]

BATCH_MAX = 1_000
"""Jobs of one request: more are several requests."""

Name = Annotated[str, Field(min_length=1, max_length=LIMITS.name_chars_max)]
Payload = Annotated[
    InstanceOf[Document],
    WithJsonSchema({"title": "Payload", "description": "Any JSON value, kept as the text that was sent."}),
]


class ConstantShape(Shape):
    """The same wait after every failure."""

    type: Literal["constant"]
    seconds: Number


class ListedShape(Shape):
    """One wait for each failure in turn; the last one repeats."""

    type: Literal["listed"]
    seconds: Annotated[tuple[Number, ...], Field(min_length=1, max_length=LIMITS.attempts_max)]


class ExponentialShape(Shape):
    """A ceiling that doubles with every failure, up to a cap."""

    type: Literal["exponential"]
    first_seconds: Number
    cap_seconds: Number
    jitter: Flag
    """The wait is drawn evenly from zero to the ceiling."""


BackoffShape = Annotated[ConstantShape | ListedShape | ExponentialShape, Field(discriminator="type")]


class NewJobShape(Shape):
    """A job to be done. What is left out takes the contract's default."""

    kind: Name
    """What is to be done: the name of a handler."""
    payload: Payload = Field(default_factory=lambda: Document("null"))
    """What the handler is given."""
    queue: Name = "default"
    """Where it waits."""
    client: Name | None = None
    """On whose behalf, as an App's name: keys are unique within it. Without it, who sends the request."""
    key: Annotated[str, Field(min_length=1, max_length=LIMITS.key_bytes_max)] | None = None
    """Submitted again under the same key it is still one job. For a single job, without it, the Idempotency-Key."""
    priority: Whole | None = None
    """Lower is sooner."""
    run_at: Moment | None = None
    """The earliest start."""
    start_by: Moment | None = None
    """The latest start."""
    finish_by: Moment | None = None
    """The end of all tries."""
    tags: Annotated[tuple[Name, ...], Field(max_length=LIMITS.tags_max)] = ()
    parents: Annotated[tuple[Id, ...], Field(max_length=LIMITS.parents_max)] = ()
    """Jobs that must have ended first."""
    policy: Policy = Policy.FAIL
    """What becomes of it when a parent can never succeed."""
    attempts: Annotated[Whole, Field(ge=1, le=LIMITS.attempts_max)] | None = None
    """Failures until it is given up."""
    crash_limit: Annotated[Whole, Field(ge=1, le=LIMITS.attempts_max)] | None = None
    """Losses until it is given up."""
    timeout_seconds: Annotated[Number, Field(gt=0, le=LIMITS.seconds_max)] | None = None
    """The hard limit of one run."""
    backoff: BackoffShape | None = None
    """The waits between tries."""
    delay_limit_seconds: Annotated[Number, Field(ge=0, le=LIMITS.seconds_max)] | None = None
    """All waits between runs together."""
    cost_limit: Annotated[Number, Field(ge=0, le=LIMITS.cost_max)] | None = None
    """A run begins only while the cost is below it."""
    trace: Annotated[str, Field(max_length=LIMITS.trace_bytes_max)] | None = None
    """The W3C traceparent in which it is asked for."""

    def to_new_job(self, client: str, key: str | None = None) -> NewJob:
        """The job as the authority is asked for it; `client` and `key` stand in for what was not given."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return NewJob(
            **given
            | {
                "client": self.client or client,
                "key": self.key or key,
                "parents": tuple(JobId(parent) for parent in self.parents),
                "backoff": None if self.backoff is None else backoff_from_json(self.backoff.model_dump(mode="json")),
            }
        )


class NewBatch(Shape):
    """Jobs to be submitted together, each answered for itself."""

    jobs: Annotated[tuple[NewJobShape, ...], Field(min_length=1, max_length=BATCH_MAX)]


class Steering(Shape):
    """Why a job is cancelled, retried or unblocked, and which revision of it was seen."""

    reason: Annotated[str, Field(max_length=LIMITS.text_bytes_max)] = ""
    """Why, for people: events and the audit tell it."""
    expected_revision: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = None
    """The job's revision as it was seen; the header If-Match says the same."""


class Forgetting(Steering):
    """Why a job is forgotten, which has to be said, and which revision of it was seen."""

    reason: Annotated[str, Field(min_length=1, max_length=LIMITS.text_bytes_max)]
    """Why, for people: its tombstone and the audit tell it."""
