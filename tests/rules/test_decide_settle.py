"""How runs end: every outcome of every owner, the corners of the budgets, and what a cancel outweighs."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules import decide
from testigo.rules.decide import Move, Position
from testigo.rules.documents import Document
from testigo.rules.outcomes import Fail, Lose, Outcome, Release, Yield
from testigo.rules.retries import Constant, Exponential, Listed
from testigo.rules.states import LEASED, TERMINAL, State
from testigo.rules.transitions import EventType as E
from tests.rules.positions import NOW, OUTCOMES, at, outcomes, positions, settled

STARTED: dict[str, Move] = {
    "succeed": Move(State.SUCCEEDED, E.COMPLETED),
    "degrade": Move(State.SUCCEEDED_DEGRADED, E.DEGRADED),
    "fail": Move(State.RETRY_WAITING, E.FAILED, wait_seconds=60, failures=1),
    "fail for good": Move(State.PERMANENT_FAILURE, E.FAILED, failures=1, reason="permanent"),
    "block": Move(State.BLOCKED_BY_QUALITY, E.BLOCKED, reason="approval"),
    "yield": Move(State.CHECKPOINTED, E.CHECKPOINTED, releases=1),
    "release": Move(State.READY, E.RELEASED, releases=1),
    "release with a checkpoint": Move(State.CHECKPOINTED, E.RELEASED, releases=1),
    "lose": Move(State.READY, E.LOST, losses=1),
}
"""What each outcome makes of a run; a job that was only leased has started by the time that it reports."""

RELEASED_UNSTARTED = Move(State.READY, E.RELEASED)
CANCELLED = Move(State.CANCELLED, E.CANCELLED, reason="cancelled")

ASKED_TO_STOP: dict[str, Move] = {
    "succeed": STARTED["succeed"],
    "degrade": STARTED["degrade"],
    "fail": Move(State.CANCELLED, E.CANCELLED, failures=1, reason="cancelled"),
    "fail for good": STARTED["fail for good"],
    "block": CANCELLED,
    "yield": CANCELLED,
    "release": CANCELLED,
    "release with a checkpoint": CANCELLED,
    "lose": CANCELLED,
}
"""What each outcome makes of a run that was asked to stop."""


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("state", sorted(LEASED))
def test_every_outcome_of_every_owner_has_its_end(state: State, name: str) -> None:
    """State, event, counts and reason of each outcome are those of the model: a release of what never began is
    free, and a wish to go on does not outlive a cancel (spec A-05, A-13, B-13, D-20, model.md)."""
    expected = ASKED_TO_STOP if state is State.CANCELLING else STARTED
    if state is State.LEASED and isinstance(OUTCOMES[name], Release):
        expected = {name: RELEASED_UNSTARTED}
    assert settled(at(state), OUTCOMES[name]) == expected[name]


@given(positions, outcomes, st.floats(0, 1, exclude_max=True))
def test_a_cancel_ends_in_exactly_one_terminal_state(position: Position, outcome: Outcome, draw: float) -> None:
    """Whatever the holder of a job that is being cancelled reports, and even if it never does, the job ends
    (spec D-20, P-24, Promise 7)."""
    cancelling = at(State.CANCELLING, failures=position.failures, losses=position.losses, finish_by=position.finish_by)
    assert settled(cancelling, outcome, draw=draw).target in TERMINAL
    assert decide.expire(cancelling, now=NOW) == CANCELLED


CORNERS: list[tuple[dict[str, Any], str | None]] = [
    ({"failures": 1}, None),
    ({"failures": 2}, "attempts"),
    ({"failures": 0, "attempts": 1}, "attempts"),
    ({"losses": 2}, None),
    ({"cost": 9.99, "cost_limit": 10.0}, None),
    ({"cost": 10.0, "cost_limit": 10.0}, "cost"),
    ({"waited_seconds": 40.0, "delay_limit_seconds": 100.0}, None),
    ({"waited_seconds": 40.1, "delay_limit_seconds": 100.0}, "delay"),
    ({"finish_by": NOW + timedelta(seconds=60.001)}, None),
    ({"finish_by": NOW + timedelta(seconds=60)}, "finish_by"),
    ({"finish_by": NOW}, "finish_by"),
    ({"failures": 2, "cost": 10.0, "cost_limit": 10.0, "finish_by": NOW}, "attempts"),
]
"""A job that fails and would wait 60 seconds: what it has spent, and which limit ends it."""


@pytest.mark.parametrize(("spent", "limit"), CORNERS)
def test_a_failure_is_retried_up_to_the_corner_of_each_budget(spent: dict[str, Any], limit: str | None) -> None:
    """The last failure, the last unit of cost and the last second of waiting end a job, one before them does
    not, and the reason names the first limit that is spent (spec A-14, B-15, D-04, Promise 6)."""
    move = settled(at(State.RUNNING, **spent), OUTCOMES["fail"])
    if limit is None:
        assert move == STARTED["fail"]
    else:
        assert move == Move(State.PERMANENT_FAILURE, E.FAILED, failures=1, reason=limit)


def test_a_wait_of_zero_is_ready_at_once() -> None:
    """A retry without a wait never stands among those that wait for their time (spec P-13)."""
    move = settled(at(State.RUNNING, backoff=Constant(0)), OUTCOMES["fail"])
    assert move == Move(State.READY, E.FAILED, failures=1)


@pytest.mark.parametrize(
    ("backoff", "failures", "asked", "wait"),
    [
        (Exponential(2, 600), 0, None, 1.0),
        (Exponential(2, 600), 1, None, 2.0),
        (Exponential(2, 600, jitter=False), 1, None, 4.0),
        (Listed((5, 50)), 1, None, 50.0),
        (Constant(60), 0, 7.5, 7.5),
    ],
)
def test_a_retry_waits_as_the_contract_or_the_handler_says(
    backoff: Any, failures: int, asked: float | None, wait: float
) -> None:
    """The wait belongs to the failure that is being counted, drawn with the given number, and the handler's own
    wish replaces it (spec A-14)."""
    fails = Fail("E", "again", wait_seconds=asked)
    assert settled(at(State.RUNNING, backoff=backoff, failures=failures), fails, draw=0.5).wait_seconds == wait


def test_a_wish_never_widens_a_budget() -> None:
    """A handler that asks for a longer wait than its contract has left is at its end, and one that asks for
    something that is no wait is refused (spec A-14)."""
    job = at(State.RUNNING, delay_limit_seconds=100.0)
    assert settled(job, Fail("E", "", wait_seconds=100.0)).wait_seconds == 100.0
    assert settled(job, Fail("E", "", wait_seconds=100.1)).reason == "delay"
    with pytest.raises(Invalid):
        settled(job, Fail("E", "", wait_seconds=-1.0))


SPENT: list[tuple[dict[str, Any], str]] = [
    ({"cost": 10.0, "cost_limit": 10.0}, "cost"),
    ({"finish_by": NOW}, "finish_by"),
]


@pytest.mark.parametrize(("given_back", "spent"), list(product([Yield(Document("1")), Release()], SPENT)))
def test_a_run_that_may_not_go_on_does_not_wait_to_be_claimed(
    given_back: Outcome, spent: tuple[dict[str, Any], str]
) -> None:
    """A job that yields or is released when its cost or its time is spent ends: no claim would know that it must
    not run again (spec D-04, Promise 6)."""
    ended = Move(State.PERMANENT_FAILURE, E.FAILED, releases=1, reason=spent[1])
    assert settled(at(State.RUNNING, **spent[0]), given_back) == ended
    assert settled(at(State.RUNNING, has_checkpoint=True, **spent[0]), given_back) == ended
    assert settled(at(State.CANCELLING, **spent[0]), given_back) == CANCELLED


def test_what_a_holder_gives_back_goes_on_from_its_checkpoint() -> None:
    """A release keeps a checkpoint that was saved before as well as one that comes with it (spec B-12)."""
    assert settled(at(State.RUNNING, has_checkpoint=True), Release()).target is State.CHECKPOINTED
    assert settled(at(State.RUNNING), Release(checkpoint=Document("1"))).target is State.CHECKPOINTED
    assert settled(at(State.RUNNING), Release()).target is State.READY


EXPIRED: list[tuple[Position, Move]] = [
    (at(State.LEASED), RELEASED_UNSTARTED),
    (at(State.LEASED, failures=2, losses=3, finish_by=NOW), RELEASED_UNSTARTED),
    (at(State.RUNNING), Move(State.READY, E.LOST, losses=1)),
    (at(State.RUNNING, has_checkpoint=True), Move(State.READY, E.LOST, losses=1)),
    (at(State.RUNNING, losses=1, failures=2), Move(State.READY, E.LOST, losses=1)),
    (at(State.RUNNING, losses=2), Move(State.PERMANENT_FAILURE, E.FAILED, losses=1, reason="crashes")),
    (at(State.RUNNING, crash_limit=1), Move(State.PERMANENT_FAILURE, E.FAILED, losses=1, reason="crashes")),
    (
        at(State.RUNNING, cost=1.0, cost_limit=1.0),
        Move(State.PERMANENT_FAILURE, E.FAILED, losses=1, reason="cost"),
    ),
    (at(State.RUNNING, finish_by=NOW), Move(State.PERMANENT_FAILURE, E.FAILED, losses=1, reason="finish_by")),
    (at(State.CANCELLING, losses=2), CANCELLED),
]
"""A job whose holder is gone, and what becomes of it."""


@pytest.mark.parametrize(("job", "move"), EXPIRED)
def test_a_dead_lease_is_a_loss_only_for_what_ran(job: Position, move: Move) -> None:
    """What ran is due again at once until its crash limit, whatever its failures; what was only leased returns
    unharmed, and what was to be cancelled is (spec P-18, P-24, field case R50, Promise 6)."""
    assert decide.expire(job, now=NOW) == move


@pytest.mark.parametrize(("job", "move"), [(job, move) for job, move in EXPIRED if job.state is not State.LEASED])
def test_a_run_whose_process_is_gone_counts_as_one_whose_holder_is(job: Position, move: Move) -> None:
    """Whoever finds that a run is gone, its holder or a sweep, the job moves alike, so that no job that kills its
    process outlives its crash limit (spec P-24, field case R20, Promise 6)."""
    assert settled(job, Lose("RUNNER_DIED", "signal 9")) == move


def test_a_job_that_was_handed_over_and_is_lost_counts_though_nobody_said_that_it_started() -> None:
    """A holder that reports a run as lost had begun it (spec A-05, Promise 6)."""
    assert settled(at(State.LEASED), Lose("E", "")) == Move(State.READY, E.LOST, losses=1)
    spent = at(State.LEASED, losses=2)
    assert settled(spent, Lose("E", "")) == Move(State.PERMANENT_FAILURE, E.FAILED, losses=1, reason="crashes")
