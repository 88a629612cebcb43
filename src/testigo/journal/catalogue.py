"""The catalogue: what each event of the engine tells, typed and versioned (spec A-01 to A-03, A-14, P-27).

A version of a type may gain members that can be absent; anything else is a new version, with a URI
of its own. So a reader of an earlier release understands the events of a later one, and ignores
what it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from testigo.errors import NotFound
from testigo.rules.states import State
from testigo.rules.transitions import EventType

if TYPE_CHECKING:
    from testigo.journal.events import Event

__all__ = ["CATALOGUE", "EventData", "RunData", "data_of", "dataschema_of", "json_schema"]


class EventData(BaseModel):
    """What an event tells besides its envelope. Checked strictly; what is unknown is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    version: ClassVar[int] = 1

    redacted: str | None = None
    """The tombstone of the redaction that took out what people and handlers had worded; else absent."""


class JobRequested(EventData):
    """A job was accepted and its stream told of it (EVT-06)."""

    queue: str
    kind: str
    priority: int
    """Lower is sooner."""
    run_at: datetime | None = None
    """The earliest start that was asked for."""
    parents: tuple[str, ...] | None = None
    """The jobs that it waits for, as they were asked for."""
    supersedes: str | None = None
    """The job whose place it takes."""
    note: str | None = None


class JobReady(EventData):
    """What the job waited for is there: its time, its retry's time or its parents."""

    state: Literal[State.READY, State.INPUTS_PENDING]


class JobLeased(EventData):
    """A session owns the job, and has not started it."""

    state: Literal[State.LEASED] = State.LEASED
    epoch: int


class JobStarted(EventData):
    """A run began."""

    state: Literal[State.RUNNING] = State.RUNNING
    epoch: int


class RunData(EventData):
    """What is known of the run that an event ends; the events' actor is its agent unless it says otherwise."""

    agent: str | None = None
    """Who had the run, where another ended it."""
    session: str | None = None
    """The session that had the run, where it is over."""
    deployment: str | None = None
    """The release of the code that ran."""
    started_at: datetime | None = None
    run_seconds: float | None = None
    """How long it ran, by its holder's monotonic clock."""
    exit_signal: int | None = None
    """What killed the process that ran it."""
    peak_memory_bytes: int | None = None


class JobCheckpointed(RunData):
    """The run left its place to others, and goes on later from its checkpoint."""

    state: Literal[State.CHECKPOINTED] = State.CHECKPOINTED
    epoch: int


class JobReleased(RunData):
    """The job was given back; no failure is counted."""

    state: Literal[State.READY, State.CHECKPOINTED]
    epoch: int
    note: str | None = None
    """Why, in the holder's words."""


class JobLost(RunData):
    """The run's holder, or what ran it for its holder, is gone; the job runs again."""

    state: Literal[State.READY] = State.READY
    epoch: int
    losses: int
    """How many there were, this one included."""
    crash_limit: int
    """How many losses the contract allows: the one that reaches it is the last."""
    note: str | None = None
    """How its holder found it, where its holder is the one who tells."""


class JobCompleted(RunData):
    """The job succeeded (EVT-07)."""

    state: Literal[State.SUCCEEDED] = State.SUCCEEDED
    epoch: int


class JobDegraded(RunData):
    """The job succeeded within named limitations (EVT-09)."""

    state: Literal[State.SUCCEEDED_DEGRADED] = State.SUCCEEDED_DEGRADED
    epoch: int
    limitations: tuple[str, ...]


class JobFailed(RunData):
    """A run failed, or the system ended a job that must not run any more (EVT-08).

    It may be tried again unless the state says `permanent_failure`; then `reason` names the bound
    that was reached, or that the failure itself was permanent.
    """

    state: Literal[State.READY, State.RETRY_WAITING, State.PERMANENT_FAILURE]
    epoch: int | None = None
    """The run that failed; absent where none did."""
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    failures: int | None = None
    """How many there were, this one included."""
    attempts: int | None = None
    """How many failures the contract allows: the one that reaches it is the last."""
    losses: int | None = None
    """How many there were, where it is a loss that ends the job."""
    crash_limit: int | None = None
    """How many losses the contract allows."""
    backoff: dict[str, Any] | None = None
    """The contract's waits between tries."""
    wait_seconds: float | None = None
    """Until the next try; absent where it may begin at once, and where there is none."""
    note: str | None = None
    """Why it was given back or how it was lost, in the holder's words, where it may not run again."""


class JobBlocked(RunData):
    """The run cannot go on without something from outside (EVT-10)."""

    state: Literal[State.BLOCKED_BY_QUALITY] = State.BLOCKED_BY_QUALITY
    epoch: int
    reason: str
    needs: str


class JobUnblocked(EventData):
    """What the job needed is there."""

    state: Literal[State.READY] = State.READY
    note: str | None = None


class JobCancelRequested(EventData):
    """A run is asked to stop; the job ends as cancelled, or with the outcome that was first."""

    state: Literal[State.CANCELLING] = State.CANCELLING
    reason: str
    note: str | None = None


class JobCancelled(RunData):
    """The job was cancelled, by a request or because a parent's end asks for it."""

    state: Literal[State.CANCELLED] = State.CANCELLED
    epoch: int | None = None
    """The run that stopped; absent where none did."""
    reason: str
    note: str | None = None
    code: str | None = None
    message: str | None = None
    needs: str | None = None


class JobSuperseded(EventData):
    """Another job took its place."""

    state: Literal[State.SUPERSEDED] = State.SUPERSEDED
    reason: str
    successor: str


class JobRedacted(EventData):
    """What the job held was removed, for a law's or safety's sake; that it was is kept (spec B-11)."""

    tombstone: str
    parts: tuple[str, ...]
    """What was removed: payload, checkpoint, output, error, log, late, events."""
    digest: str
    """Of all texts that are gone."""
    note: str
    """Why."""


CATALOGUE: Mapping[str, type[EventData]] = {
    EventType.REQUESTED: JobRequested,
    EventType.PROMOTED: JobReady,
    EventType.LEASED: JobLeased,
    EventType.STARTED: JobStarted,
    EventType.CHECKPOINTED: JobCheckpointed,
    EventType.RELEASED: JobReleased,
    EventType.LOST: JobLost,
    EventType.COMPLETED: JobCompleted,
    EventType.DEGRADED: JobDegraded,
    EventType.FAILED: JobFailed,
    EventType.BLOCKED: JobBlocked,
    EventType.UNBLOCKED: JobUnblocked,
    EventType.CANCEL_REQUESTED: JobCancelRequested,
    EventType.CANCELLED: JobCancelled,
    EventType.SUPERSEDED: JobSuperseded,
    EventType.REDACTED: JobRedacted,
}
"""Every event of the engine, by its type."""


def data_of(event: Event) -> EventData:
    """What an event tells, typed by its type; members that this release does not know are left out.

    Raises `NotFound` for a type that this release does not know.
    """
    model = CATALOGUE.get(event.type)
    if model is None:
        raise NotFound(
            f"This release knows no events of the type {event.type!r}.",
            field="type",
            remedy="Pass over the event, or upgrade: a later release wrote it.",
        )
    known = {name: value for name, value in event.data.items() if name in model.model_fields}
    return model.model_validate_json(json.dumps(known))


def dataschema_of(name: str) -> str | None:
    """The URI of the schema that events of this type have, `urn:testigo:event:<type>:<version>`, or None."""
    model = CATALOGUE.get(name)
    return None if model is None else f"urn:testigo:event:{name}:{model.version}"


def json_schema(name: EventType) -> dict[str, Any]:
    """The JSON Schema (2020-12) of what events of this type tell; its `$id` is their `dataschema`."""
    schema = CATALOGUE[name].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": dataschema_of(name), **schema}
