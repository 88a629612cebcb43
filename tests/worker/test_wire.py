"""Ends, jobs and errors cross the protocol unchanged, and are checked when they arrive."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testigo.authority.actions import JobId
from testigo.authority.submissions import NewJob, check
from testigo.errors import Error, Invalid, KeyConflict, LeaseLost, PayloadInvalid, ProtocolBroken
from testigo.rules.decide import Policy
from testigo.rules.documents import Document, encode
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Release, Succeed, Yield
from testigo.rules.retries import Exponential, Listed
from testigo.worker.wire import (
    NULL_END,
    End,
    end_from_wire,
    end_to_wire,
    error_from_wire,
    error_to_wire,
    new_job_from_wire,
    new_job_to_wire,
)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
PLAIN = NewJob("a", id=JobId("0191f2d0-1111-7000-8000-000000000000"))
FULL = NewJob(
    "media.transcode",
    encode({"path": "a.mp4", "big": 2**70}),
    queue="media",
    client="shop",
    key="order-17",
    priority=-3,
    run_at=NOON,
    start_by=NOON + timedelta(hours=1),
    finish_by=NOON + timedelta(hours=2),
    tags=("nightly", "eu"),
    parents=(PLAIN.id,),
    policy=Policy.CANCEL,
    attempts=5,
    crash_limit=2,
    timeout_seconds=7.5,
    backoff=Listed((1.0, 2.0)),
    delay_limit_seconds=60.0,
    cost_limit=3.5,
    trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)

ENDS = [
    NULL_END,
    End(Succeed(encode({"n": 1e300}))),
    End(Succeed(encode("é")), (PLAIN, FULL)),
    End(Degrade(encode([1]), ("no audio", "half size"))),
    End(Degrade(encode([1]), ("no audio",)), (PLAIN,)),
    End(Fail("ValueError", "no", "Traceback …", permanent=True)),
    End(Fail("RETRY_AFTER", "", wait_seconds=30.0)),
    End(Block("no money", "an approval", encode({"at": 3}))),
    End(Block("no money")),
    End(Yield(encode({"at": 3}))),
    End(Release("drained")),
    End(Release("drained", encode(1))),
]


def over_the_wire(value: object) -> Any:
    """The value as the other side decodes it."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end.outcome).__name__)
def test_an_end_arrives_as_it_left(end: End) -> None:
    """Every outcome, with and without children, comes back equal."""
    assert end_from_wire(over_the_wire(end_to_wire(end))) == end


@pytest.mark.parametrize("job", [PLAIN, FULL, NewJob("b", backoff=Exponential(1.0, 2.0, jitter=False))])
def test_a_job_arrives_as_it_left(job: NewJob) -> None:
    """Every member of a new job comes back equal, its payload as a document."""
    arrived = new_job_from_wire(over_the_wire(new_job_to_wire(job)))
    assert arrived == job
    assert type(arrived.payload) is Document
    check([arrived])


def test_more_children_than_a_batch_has_are_refused_unread() -> None:
    """None of them is looked at."""
    with pytest.raises(Invalid) as refused:
        end_from_wire(["succeed", "null", [None] * 10_001])
    assert refused.value.field == "children"
    assert refused.value.limit == "10000 values"


def test_what_is_not_given_does_not_travel() -> None:
    """Members that are None are left out."""
    assert new_job_to_wire(PLAIN).keys() == {"id", "kind", "payload", "queue", "client", "tags", "parents", "policy"}


@pytest.mark.parametrize(
    "end",
    [
        None,
        [],
        "succeed",
        ["succeed"],
        ["succeed", "1", {}],
        ["degrade", "1"],
        ["fail", "X", "m", "d", 1, None],
        ["fail", "X", "m", "d", False, "soon"],
        ["block", None, "", None],
        ["lose", "X", ""],
        ["yield"],
        [["succeed", "1"]],
    ],
    ids=repr,
)
def test_what_is_no_end_breaks_the_conversation(end: object) -> None:
    """A value of no known form is no end."""
    with pytest.raises(ProtocolBroken):
        end_from_wire(end)


@pytest.mark.parametrize(
    ("end", "field"),
    [
        (["succeed", "{"], "output"),
        (["succeed", 1], "output"),
        (["succeed", '"\\u0000"'], "output"),
        (["succeed", '{"a":1,"a":2}'], "output.a"),
        (["succeed", '"' + "x" * 300_000 + '"'], "output"),
        (["degrade", "null", ["two\nlines"]], "limitations[0]"),
        (["degrade", "null", [7]], "limitations[0]"),
        (["fail", "X", "", "", False, -1], "wait_seconds"),
        (["fail", "X", "", "", False, 1e30], "wait_seconds"),
        (["fail", "X", "", "", False, True], "wait_seconds"),
        (["yield", "NaN"], "checkpoint"),
        (["block", "", "", 5], "checkpoint"),
        (["succeed", "null", [7]], "job"),
        (["succeed", "null", [{"id": PLAIN.id, "kind": "a"}]], "job.payload"),
        (["succeed", "null", [{"id": PLAIN.id, "kind": "a", "payload": "1", "size": 3}]], "job"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_end_that_cannot_be_kept_is_refused_by_its_field(end: object, field: str) -> None:
    """An end of a known form with an unfit value fails its run, not its runner."""
    with pytest.raises(Invalid) as refused:
        end_from_wire(end)
    assert refused.value.field == field


def test_text_of_an_end_is_made_fit_and_never_refused() -> None:
    """Recording a failure never fails (field case R45)."""
    fail = end_from_wire(["fail", "X" * 1000, "a\x00b\ud800", "d" * 100_000, False, None]).outcome
    assert isinstance(fail, Fail)
    assert fail.message == "a\ufffdb\ufffd"
    assert len(fail.detail.encode()) <= 16 * 1024
    assert len(fail.code) <= 200


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("run_at", "noon", "job.run_at"),
        ("run_at", 5, "job.run_at"),
        ("run_at", "2026-06-01T12:00:00", "job.run_at"),
        ("tags", "nightly", "job.tags"),
        ("parents", {"a": 1}, "job.parents"),
        ("policy", "perhaps", "job.policy"),
        ("backoff", [1, 2], "backoff"),
        ("payload", {"a": 1}, "job.payload"),
    ],
)
def test_a_member_of_another_form_is_refused_by_its_name(member: str, value: object, field: str) -> None:
    """What must be read to be sent on is checked here."""
    with pytest.raises(Invalid) as refused:
        new_job_from_wire({**new_job_to_wire(PLAIN), member: value})
    assert refused.value.field == field


@pytest.mark.parametrize("member", ["kind", "queue", "client", "key", "priority", "attempts", "timeout_seconds", "id"])
def test_what_is_left_to_the_submission_is_refused_there(member: str) -> None:
    """No member passes both checks unseen."""
    wrong = new_job_from_wire({**new_job_to_wire(PLAIN), member: ["no"]})
    with pytest.raises(Invalid):
        check([wrong])


@pytest.mark.parametrize(
    "error",
    [LeaseLost("gone"), PayloadInvalid("not that", field="checkpoint", remedy="Another."), KeyConflict("taken")],
)
def test_an_error_arrives_in_its_own_class(error: Error) -> None:
    """A handler catches what its keeper met."""
    arrived = error_from_wire(over_the_wire(error_to_wire(error)))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


def test_an_error_of_other_code_is_an_error_still() -> None:
    """A newer keeper may know codes that this side does not."""
    assert type(error_from_wire(["NEW_CODE", "new", None, "Wait."])) is Error
    with pytest.raises(ProtocolBroken):
        error_from_wire(["NEW_CODE"])


def test_a_runner_does_not_report_its_own_loss() -> None:
    """Only a keeper sees a runner die."""
    with pytest.raises(Invalid, match="lost"):
        end_to_wire(End(Lose("RUNNER_DIED", "")))
