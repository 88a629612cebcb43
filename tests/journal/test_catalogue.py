"""The catalogue: what the engine writes is what its types say, and what they say is written down."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from testigo.authority.expire import expire
from testigo.authority.sessions import close_session
from testigo.errors import Invalid, NotFound
from testigo.journal.catalogue import CATALOGUE, EventData, JobFailed, JobLost, JobRequested, data_of, json_schema
from testigo.journal.events import Event
from testigo.journal.history import history
from testigo.journal.streams import read
from testigo.rules.outcomes import Block, Fail, Release, RunFacts
from testigo.rules.retries import Constant
from testigo.rules.states import State
from testigo.rules.transitions import EventType
from tests.journal.everything import FACTS, do_everything, end, keep_in_full, redact_everything
from tests.world import World

EVENT = Event(
    "01a22d6b-1271-7393-a7e6-b66e0da91fc1",
    "job.released",
    "01a22d6b-1273-72e3-81cc-8ea66fa6eb58",  # type: ignore[arg-type]
    datetime(2026, 11, 30, tzinfo=UTC),
    "q",
    1,
    1,
    "somebody",
    "something",
    {"state": "ready", "epoch": 1},
)


def test_every_event_that_the_engine_writes_is_what_its_type_says(world: World) -> None:
    """Each command, along each of its ways, tells exactly the members of its event's schema (spec A-02, A-03, P-27)."""
    keep_in_full(world, "full")
    for queue in ("q", "full"):
        do_everything(world, queue)
    told = all_told(world)
    redact_everything(world, "full")
    for event in told + all_told(world):
        strictly(event)
    assert {event.type for event in all_told(world)} == set(CATALOGUE)


def all_told(world: World) -> list[Event]:
    """Every event as it stands now."""
    return [event for queue in ("q", "full") for event in world.db.run(read, queue, limit=1000).events]


def strictly(event: Event) -> EventData:
    """What an event tells, refused for any member that its schema does not have."""
    return CATALOGUE[event.type].model_validate_json(json.dumps(event.data))


def test_every_event_type_of_the_state_machine_is_in_the_catalogue() -> None:
    """There is no event of the engine whose payload has no schema (spec A-01, A-02)."""
    assert set(CATALOGUE) == set(EventType)


def test_what_a_schema_does_not_have_is_no_event() -> None:
    """A member that is unknown, missing or of another type does not pass the schema (spec A-02)."""
    asked = {"queue": "q", "kind": "k", "priority": 0}
    JobRequested.model_validate_json(json.dumps(asked))
    for broken in ({**asked, "colour": "red"}, {"queue": "q", "kind": "k"}, {**asked, "priority": "0"}):
        with pytest.raises(ValidationError):
            JobRequested.model_validate_json(json.dumps(broken))


def test_a_schema_names_its_version_and_every_member() -> None:
    """A schema's `$id` is what its events call their dataschema; it is closed, and describes itself (spec A-02)."""
    for name in EventType:
        schema = json_schema(name)
        assert schema["$id"] == replace(EVENT, type=name).dataschema == f"urn:testigo:event:{name}:1"
        assert schema["description"]
        assert schema["additionalProperties"] is False
        assert set(schema["properties"]) == set(CATALOGUE[name].model_fields)


def test_an_event_of_a_later_release_is_understood_as_far_as_it_is_known() -> None:
    """A member that this release does not know is passed over; an unknown type is refused by name (Promise 10)."""
    later = replace(EVENT, data={**EVENT.data, "colour": "red"})
    assert data_of(later) == data_of(EVENT)
    unknown = replace(EVENT, type="job.painted")
    assert unknown.dataschema is None
    with pytest.raises(NotFound, match=r"job\.painted"):
        data_of(unknown)


def test_a_failure_tells_the_policy_that_applied_and_when_the_job_runs_again(world: World) -> None:
    """A failed run's event holds code, message, failures, attempts, backoff, wait and the run's facts (spec A-14)."""
    world.submit(backoff=Constant(60), attempts=5)
    worker = world.worker()
    lease = worker.take()
    end(worker, lease, Fail("E42", "no luck"), facts=FACTS)
    failed = data_of(world.db.run(history, lease.job_id).events[-1])
    assert isinstance(failed, JobFailed)
    assert (failed.state, failed.code, failed.message) == (State.RETRY_WAITING, "E42", "no luck")
    assert (failed.failures, failed.attempts, failed.wait_seconds) == (1, 5, 60)
    assert failed.backoff == {"type": "constant", "seconds": 60}
    assert (failed.deployment, failed.run_seconds, failed.exit_signal) == ("2026.11", 1.5, 9)


def test_words_that_no_database_could_hold_are_made_fit_in_events_too(world: World) -> None:
    """Recording how a run ended never fails, whatever a handler says of it (model.md *Errors*; field case R45)."""
    unfit = "a\x00b\ud800"
    worker = world.worker()
    for outcome in (Fail(unfit, unfit, unfit), Block(unfit, unfit), Release(unfit)):
        (job,) = world.submit(priority=-1)
        end(worker, worker.take(), outcome)
        told = world.db.run(history, job).events
        assert all("\x00" not in str(event.data) and strictly(event) for event in told)


def test_the_event_of_a_lost_run_names_whose_run_it_was(world: World) -> None:
    """The system tells of the loss, so the event itself names agent, session and beginning (spec P-27)."""
    (job,) = world.submit()
    worker = world.worker("crane")
    worker.take()
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    event = world.db.run(history, job).events[-1]
    lost = data_of(event)
    assert isinstance(lost, JobLost)
    assert (event.actor, lost.agent, lost.session, lost.epoch) == ("system", "crane", worker.id, 1)
    assert lost.started_at is not None
    assert lost.started_at <= event.time


@pytest.mark.parametrize(
    "wrong",
    [
        {"deployment": "x" * 201},
        {"deployment": "a\x00b"},
        {"started_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - the fault that is looked for
        {"run_seconds": float("nan")},
        {"run_seconds": -1.0},
        {"exit_signal": 0},
        {"peak_memory_bytes": 2**64},
        {"peak_memory_bytes": True},
    ],
)
def test_facts_that_no_event_could_tell_are_refused_by_name(wrong: dict[str, Any]) -> None:
    """What does not fit an event's schema is refused before a command accepts anything (spec A-02)."""
    with pytest.raises(Invalid) as refused:
        RunFacts(**wrong).check()
    assert refused.value.field == f"facts.{next(iter(wrong))}"
