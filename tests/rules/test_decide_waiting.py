"""How jobs that nobody owns are admitted, promoted, judged by their parents, found unfit and retired."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain, combinations, product
from typing import Any

import pytest

from testigo.rules import decide
from testigo.rules.decide import Inputs, Move, Policy
from testigo.rules.states import WAITING, State
from testigo.rules.transitions import EventType as E
from tests.rules.positions import NOW, at

SUBSETS = list(chain.from_iterable(combinations(Policy, size) for size in range(5)))
PARENTS = [Inputs(still_open, broken) for still_open, broken in product((0, 1, 7), SUBSETS)]
"""Parents that are open or not, and every set of policies of those that can never succeed."""

MINUTE = timedelta(minutes=1)


def kind(parents: Inputs) -> str:
    """What these parents come to, by the strictest of their policies (spec A-08)."""
    if Policy.FAIL in parents.broken:
        return "fail"
    if Policy.CANCEL in parents.broken:
        return "cancel"
    return "wait" if parents.open or Policy.WAIT in parents.broken else "fulfilled"


ADMITTED = {"fulfilled": State.READY, "wait": State.INPUTS_PENDING, "fail": State.INPUTS_PENDING}
ADMITTED["cancel"] = State.INPUTS_PENDING
JUDGED = {
    "fulfilled": Move(State.READY, E.PROMOTED),
    "wait": None,
    "fail": Move(State.PERMANENT_FAILURE, E.FAILED, reason="parent"),
    "cancel": Move(State.CANCELLED, E.CANCELLED, reason="parent"),
}


@pytest.mark.parametrize("parents", PARENTS, ids=str)
def test_a_due_job_is_admitted_to_its_parents_or_to_the_queue(parents: Inputs) -> None:
    """With any open or broken parent it waits for them, and without one it is ready (spec A-08, P-11, P-25)."""
    assert decide.admit(at(State.CREATED), parents, due=True) == Move(ADMITTED[kind(parents)], E.REQUESTED)


@pytest.mark.parametrize("parents", PARENTS, ids=str)
def test_time_comes_before_parents(parents: Inputs) -> None:
    """A job with a future date stays created whatever its parents do, unless one of them ends it
    (spec P-11, P-25)."""
    ends = kind(parents) in ("fail", "cancel")
    target = State.INPUTS_PENDING if ends else State.CREATED
    assert decide.admit(at(State.CREATED), parents, due=False) == Move(target, E.REQUESTED)


@pytest.mark.parametrize("parents", PARENTS, ids=str)
def test_a_job_whose_time_has_come_waits_for_its_parents_or_is_ready(parents: Inputs) -> None:
    """A first run waits for parents that are open, a later one has had them all (spec P-13, P-25)."""
    assert decide.promote(at(State.CREATED), parents) == Move(ADMITTED[kind(parents)], E.PROMOTED)
    assert decide.promote(at(State.RETRY_WAITING), parents) == Move(State.READY, E.PROMOTED)


@pytest.mark.parametrize("parents", PARENTS, ids=str)
def test_parents_that_have_ended_decide_by_the_strictest_policy(parents: Inputs) -> None:
    """The last parent that is fulfilled makes its child ready; one that can never be fails or cancels it, fail
    before cancel, or leaves it waiting for a successor (spec A-08, P-25)."""
    assert decide.inputs(at(State.INPUTS_PENDING), parents) == JUDGED[kind(parents)]


@pytest.mark.parametrize("parents", PARENTS, ids=str)
def test_a_child_that_waits_for_its_time_hears_only_of_its_end(parents: Inputs) -> None:
    """Fulfilled parents do not make a job ready before its date; broken ones end it at once (spec P-25)."""
    expected = JUDGED[kind(parents)] if kind(parents) in ("fail", "cancel") else None
    assert decide.inputs(at(State.CREATED), parents) == expected


FIT: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"start_by": NOW}, None),
    ({"start_by": NOW - MINUTE}, "start_by"),
    ({"start_by": NOW - MINUTE, "runs": 1}, None),
    ({"finish_by": NOW}, None),
    ({"finish_by": NOW - MINUTE}, "finish_by"),
    ({"finish_by": NOW - MINUTE, "runs": 1}, "finish_by"),
    ({"failures": 2}, None),
    ({"failures": 3}, "attempts"),
    ({"failures": 4}, "attempts"),
    ({"losses": 2}, None),
    ({"losses": 3}, "crashes"),
    ({"losses": 4}, "crashes"),
    ({"start_by": NOW - MINUTE, "finish_by": NOW - MINUTE, "failures": 3, "losses": 3}, "start_by"),
    ({"finish_by": NOW - MINUTE, "failures": 3, "losses": 3}, "finish_by"),
    ({"failures": 3, "losses": 3}, "attempts"),
]


@pytest.mark.parametrize(("given", "reason"), FIT)
@pytest.mark.parametrize("state", [State.READY, State.CHECKPOINTED, State.CREATED])
def test_a_job_is_fit_to_start_up_to_its_dates_and_budgets(
    state: State, given: dict[str, Any], reason: str | None
) -> None:
    """`start_by` binds only the first run, `finish_by` every one, and each holds until it has passed; a job at a
    limit is not started (spec P-24, field case R50)."""
    assert decide.is_fit(at(state, **given), now=NOW) == reason


@pytest.mark.parametrize(
    ("state", "epochs"),
    [
        (State.READY, 1),
        (State.CHECKPOINTED, 0),
        (State.CREATED, 0),
        (State.INPUTS_PENDING, 0),
        (State.RETRY_WAITING, 0),
    ],
)
def test_the_system_ends_what_must_not_start(state: State, epochs: int) -> None:
    """A job that waits ends as a failure with its reason; the ready one is granted to the system in passing, under
    an epoch of its own (spec P-24)."""
    ended = Move(State.PERMANENT_FAILURE, E.FAILED, epochs=epochs, reason="start_by")
    assert decide.retire(at(state), "start_by") == ended


@pytest.mark.parametrize("state", sorted(WAITING))
def test_what_nobody_owns_is_cancelled_at_once(state: State) -> None:
    """There is nobody to ask, so the job ends in the same command (spec D-20, P-24)."""
    assert decide.cancel(at(state)) == Move(State.CANCELLED, E.CANCELLED, reason="cancelled")


@pytest.mark.parametrize("state", [State.LEASED, State.RUNNING])
def test_who_owns_a_job_is_asked_to_stop(state: State) -> None:
    """The request is a state of its own, and not yet an end (spec D-20, Promise 7)."""
    assert decide.cancel(at(state)) == Move(State.CANCELLING, E.CANCEL_REQUESTED, reason="cancelled")


def test_a_blocked_job_goes_back_to_the_queue_or_makes_room() -> None:
    """New evidence makes it ready and clears its reason; a successor takes its place (spec A-06, A-13, B-14)."""
    blocked = at(State.BLOCKED_BY_QUALITY)
    assert decide.unblock(blocked) == Move(State.READY, E.UNBLOCKED)
    assert decide.supersede(blocked) == Move(State.SUPERSEDED, E.SUPERSEDED, reason="superseded")
