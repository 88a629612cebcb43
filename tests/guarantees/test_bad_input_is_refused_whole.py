"""Bad input is refused by code, field, limit and remedy, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from testigo.authority.actions import Action, SessionAction, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.pause import Scope, configure_queue, pause
from testigo.authority.sessions import NewSession, open_session
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many, submit_within
from testigo.errors import Error, Invalid, NotFound, PayloadInvalid, PayloadTooLarge
from testigo.rules.documents import Document, encode, parse
from testigo.rules.outcomes import Degrade, Fail, Succeed
from testigo.rules.retries import Constant, Exponential, Listed
from testigo.store.connections import run_within
from tests.world import World

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
DEEP = "[" * 100 + "]" * 100

JOBS: dict[str, tuple[dict[str, Any], str]] = {
    "a kind that is empty": ({"kind": ""}, "kind"),
    "a kind of 300 characters": ({"kind": "k" * 300}, "kind"),
    "a kind that is no text": ({"kind": 5}, "kind"),
    "a queue with a NUL": ({"queue": "a\0b"}, "queue"),
    "a queue with a lone surrogate": ({"queue": "a\ud800"}, "queue"),
    "a queue that names a stripe": ({"queue": "a#1"}, "queue"),
    "a client with a border of blanks": ({"client": " web "}, "client"),
    "a key of 10 KB": ({"key": "k" * 10_240}, "key"),
    "an empty key": ({"key": ""}, "key"),
    "a key with a NUL": ({"key": "a\0"}, "key"),
    "a naive run_at": ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001
    "a run_at in year 9999": ({"run_at": datetime(9999, 12, 31, tzinfo=UTC)}, "run_at"),
    "a run_at beyond every year": ({"run_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))}, "run_at"),
    "a run_at that is a number": ({"run_at": 1_900_000_000}, "run_at"),
    "a start_by before run_at": ({"run_at": NOON, "start_by": NOON - timedelta(seconds=1)}, "start_by"),
    "a finish_by before start_by": ({"start_by": NOON, "finish_by": NOON - timedelta(days=1)}, "finish_by"),
    "a priority of 2**64": ({"priority": 2**64}, "priority"),
    "a priority that is a truth": ({"priority": True}, "priority"),
    "no attempts": ({"attempts": 0}, "attempts"),
    "a broken number of attempts": ({"attempts": 1.5}, "attempts"),
    "a crash limit beyond all bounds": ({"crash_limit": 10**6}, "crash_limit"),
    "a timeout of nothing": ({"timeout_seconds": 0}, "timeout_seconds"),
    "a timeout that is no number": ({"timeout_seconds": float("nan")}, "timeout_seconds"),
    "an infinite timeout": ({"timeout_seconds": float("inf")}, "timeout_seconds"),
    "a delay limit below zero": ({"delay_limit_seconds": -1}, "delay_limit_seconds"),
    "a cost limit that is no number": ({"cost_limit": float("nan")}, "cost_limit"),
    "a backoff that is a number": ({"backoff": 5}, "backoff"),
    "a policy that does not exist": ({"parents": (new_id(),), "policy": "explode"}, "policy"),
    "a policy that nothing asks for": ({"policy": "explode"}, "policy"),
    "a kind that cannot be hashed": ({"kind": ["work"]}, "kind"),
    "a queue that cannot be hashed": ({"queue": {}}, "queue"),
    "a cost limit below zero": ({"cost_limit": -1}, "cost_limit"),
    "a cost limit that is a truth": ({"cost_limit": True}, "cost_limit"),
    "33 tags": ({"tags": tuple(f"t{n}" for n in range(33))}, "tags"),
    "tags in one string": ({"tags": "abc"}, "tags"),
    "a tag of 300 characters": ({"tags": ("t" * 300,)}, "tags[0]"),
    "a parent that is no id": ({"parents": ("mother",)}, "parents[0]"),
    "parents in one string": ({"parents": new_id()}, "parents"),
    "an id that is no id": ({"id": "seven"}, "id"),
    "a payload that is no JSON": ({"payload": "{"}, "payload"),
    "a payload that is no text": ({"payload": {"a": 1}}, "payload"),
    "a payload with a doubled key": ({"payload": '{"a":1,"a":2}'}, "payload"),
    "a payload with NaN": ({"payload": '{"a":NaN}'}, "payload"),
    "a payload with an escaped NUL": ({"payload": '"\\u0000"'}, "payload"),
    "a payload with a lone surrogate": ({"payload": '"\\ud800"'}, "payload"),
    "a payload 100 levels deep": ({"payload": DEEP}, "payload"),
    "a payload of a megabyte": ({"payload": '"' + "a" * 2**20 + '"'}, "payload"),
}


@pytest.mark.parametrize("case", JOBS)
def test_a_batch_with_one_bad_row_is_refused_before_anything_is_written(world: World, case: str) -> None:
    """The good rows of a batch are not accepted behind a bad one (spec P-02; decision record 0009)."""
    given, field = JOBS[case]
    good = NewJob("work", queue="q", key="good")
    bad = NewJob(**{"kind": "work", "queue": "q", **given})
    refused = _refusal(lambda: world.db.run(submit_many, [good, bad], action=Action("tester")))
    assert isinstance(refused, Invalid)
    assert refused.field is not None
    assert refused.field.removeprefix("jobs[1].").startswith(field)
    assert refused.remedy.endswith(".")
    _assert_nothing_is_left(world)


def test_a_parent_that_does_not_exist_is_named(world: World) -> None:
    """A job cannot wait for what was never submitted; the row and the parent are named (spec A-08)."""
    missing = new_id()
    jobs = [NewJob("work", queue="q"), NewJob("work", queue="q", parents=(missing,))]  # type: ignore[arg-type]
    refused = _refusal(lambda: world.db.run(submit_many, jobs, action=Action("tester")))
    assert isinstance(refused, NotFound)
    assert refused.field == "jobs[1].parents"
    assert missing in refused.message
    _assert_nothing_is_left(world)


def test_jobs_that_wait_for_each_other_are_refused_with_the_circle(world: World) -> None:
    """A cycle within a batch would wait for ever (spec P-25)."""
    one, two, three = (new_id() for _ in range(3))
    circle = [_child(one, three), _child(two, one), _child(three, two)]
    refused = _refusal(lambda: world.db.run(submit_many, circle, action=Action("tester")))
    assert isinstance(refused, Invalid)
    assert all(job_id in refused.message for job_id in (one, two, three))
    _assert_nothing_is_left(world)


def test_a_job_that_waits_for_itself_is_refused(world: World) -> None:
    """The smallest circle (spec P-25)."""
    job_id = new_id()
    refused = _refusal(lambda: world.db.run(submit_many, [_child(job_id, job_id)], action=Action("tester")))
    assert isinstance(refused, Invalid)
    _assert_nothing_is_left(world)


@pytest.mark.parametrize("policy", ["explode", 5, None, "a\0"])
def test_no_submission_can_stand_in_the_way_of_every_admission(world: World, database_url: str, policy: Any) -> None:
    """A policy is refused when it is submitted, not by whoever admits the job and all others with it (spec P-11)."""
    with psycopg.connect(database_url) as caller:
        refused = _refusal(
            lambda: run_within(caller, submit_within, [NewJob("work", policy=policy)], action=Action("shop"))
        )
        assert refused.field == "jobs[0].policy"
        run_within(caller, submit_within, [NewJob("work")], action=Action("shop"))
    assert world.db.run(admit).admitted == 1


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_batch_has_bounds(world: World, count: int) -> None:
    """Neither an empty batch nor one that would hold its locks for long is sent (spec P-10)."""
    refused = _refusal(lambda: world.db.run(submit_many, [NewJob("work")] * count, action=Action("tester")))
    assert isinstance(refused, Invalid)
    assert refused.limit == "1 to 10000 jobs"
    _assert_nothing_is_left(world)


def test_numbers_beyond_a_double_are_kept_exactly(world: World) -> None:
    """2**64, -0.0, 1e2 and a long integer come back as the very text (spec P-06, field case R45)."""
    text = '{"big":18446744073709551616,"zero":-0.0,"e":1e2,"long":' + "9" * 400 + "}"
    (job_id,) = world.submit(payload=parse(text))
    assert world.job(job_id).payload == text
    assert world.worker().take().payload == text


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", "a\0b", {1: 2}, {"a": b"x"}, object(), ["x" * 300_000]]
)
def test_a_value_that_json_cannot_hold_is_refused_when_it_is_encoded(value: object) -> None:
    """Encoding refuses what could not be kept exactly, with the path of the fault (spec P-06, field case R45)."""
    with pytest.raises((PayloadInvalid, PayloadTooLarge)) as refused:
        encode({"items": [value]})
    assert refused.value.field is not None
    assert refused.value.field.startswith("payload")


def test_an_inline_document_has_a_limit_whose_remedy_names_blobs(world: World) -> None:
    """Payload, output and checkpoint are inline up to 256 KiB each, exactly (issue *Limits*)."""
    most = encode("a" * (256 * 1024 - 2))
    (job_id,) = world.submit(payload=most)
    worker = world.worker()
    lease = worker.take()
    assert lease.payload == most
    with pytest.raises(PayloadTooLarge) as refused:
        encode("a" * (256 * 1024 - 1))
    assert "blob" in refused.value.remedy
    worker.settle((lease, Succeed(most)))
    assert world.job(job_id).output == most


@pytest.mark.parametrize(
    "outcome",
    [
        Succeed(Document("null") + "{"),  # type: ignore[arg-type]
        Degrade(encode(1), ()),
        Degrade(encode(1), ("",)),
        Fail("E", "m", wait_seconds=-1),
        Fail("E", "m", wait_seconds=float("nan")),
    ],
)
def test_a_settle_with_one_bad_row_settles_none(world: World, outcome: Any) -> None:
    """The other runs of the batch stay owned and can be settled again (spec P-09)."""
    world.submit()
    world.submit()
    worker = world.worker()
    good, bad = worker.claim().leases
    refused = _refusal(lambda: worker.settle((good, Succeed()), (bad, outcome)))
    assert isinstance(refused, Invalid)
    assert refused.field is not None
    assert refused.field.startswith("settlements[1]")
    assert world.state(good.job_id) == "running"
    worker.succeed(good, bad)


@pytest.mark.parametrize("make", [lambda: Constant(-1), lambda: Listed(()), lambda: Exponential(5, 1)])
def test_a_backoff_that_makes_no_sense_cannot_be_made(make: Callable[[], object]) -> None:
    """A wait below zero, an empty list, a cap below the first wait (spec C-02)."""
    assert isinstance(_refusal(make), Invalid)


def test_text_about_a_failure_is_made_fit_and_never_refused(world: World) -> None:
    """Recording a failure never fails: NUL, surrogates and megabytes are replaced and cut (field case R45)."""
    (job_id,) = world.submit(attempts=1)
    worker = world.worker()
    worker.settle((worker.take(), Fail("E\0", "boom \ud800", "x" * 2**20)))
    job = world.job(job_id)
    assert job.state == "permanent_failure"
    assert "\0" not in job.error
    assert len(job.error) < 40_000


@pytest.mark.parametrize(
    "send",
    [
        lambda w: w.db.run(cancel, [], action=w.action()),
        lambda w: w.db.run(cancel, ["seven"], action=w.action()),
        lambda w: w.db.run(cancel, [new_id()] * 2, action=w.action()),
        lambda w: w.db.run(pause, Scope.QUEUE, "", action=w.action()),
        lambda w: w.db.run(pause, "planet", "q", action=w.action()),
        lambda w: w.db.run(configure_queue, "q", events="some", action=w.action()),
        lambda w: w.db.run(configure_queue, "q", stripes=0, action=w.action()),
        lambda w: w.db.run(open_session, NewSession("a", ("q",), ("k",), term_seconds=1), action=w.action()),
        lambda w: w.db.run(open_session, NewSession("a\0", ("q",), ("k",)), action=w.action()),
        lambda w: w.db.run(open_session, NewSession("a", ("",), ("k",)), action=w.action()),
        lambda w: Action(""),
        lambda w: Action("me", "x" * 300),
        lambda w: Action("me", created_at=datetime(2030, 1, 1)),  # noqa: DTZ001
        lambda w: _claim(w, slots=0),
        lambda w: _claim(w, slots=401),
        lambda w: _claim(w, queues=()),
        lambda w: _claim(w, kinds=()),
    ],
)
def test_every_other_command_refuses_by_field(world: World, send: Callable[[World], object]) -> None:
    """Whatever a command takes from outside, it refuses with a code and a field, and does nothing (B-02)."""
    refused = _refusal(lambda: send(world))
    assert isinstance(refused, Invalid)
    assert refused.field is not None
    _assert_nothing_is_left(world)


def _child(job_id: str, parent: str) -> NewJob:
    return NewJob("work", queue="q", id=job_id, parents=(parent,))  # type: ignore[arg-type]


def _claim(world: World, slots: int = 1, queues: tuple[str, ...] = ("q",), kinds: tuple[str, ...] = ("k",)) -> object:
    wanted = [QueueClaim(queue, slots) for queue in queues]
    action = SessionAction(new_id(), "a", 1)  # type: ignore[arg-type]
    return world.db.run(claim, wanted, kinds, slots=slots, lease_id=new_id(), action=action)


def _refusal(send: Callable[[], object]) -> Error:
    with pytest.raises(Error) as refused:
        send()
    return refused.value


def _assert_nothing_is_left(world: World) -> None:
    for table in ("job", "submission", "admission", "event", "stream", "receipt", "session", "pause", "queue"):
        assert world.query(f"SELECT count(*) AS rows FROM testigo.{table}")[0].rows == 0, table
