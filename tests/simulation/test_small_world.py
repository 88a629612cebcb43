"""Every interleaving of a small world keeps the promises, through the real rules.

A world with one job is explored until there is nothing new to see; one with three jobs, to a depth. The rules
that are broken on purpose show that each promise is really looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testigo.rules import decide
from testigo.rules.decide import Inputs, Move, Policy, Position
from testigo.rules.outcomes import Fail, Outcome, Release
from testigo.rules.states import TERMINAL, State
from testigo.rules.transitions import EventType
from tests.simulation.authority import Authority, Rules
from tests.simulation.exploring import Broken, Explored, explore
from tests.simulation.small_world import Contract, World

EVERY = ("succeed", "fail", "fail for good", "block", "yield", "release", "lose")
RETRIED = Contract(EVERY, attempts=2, crash_limit=2, wait_seconds=10)
FRAGILE = replace(RETRIED, crash_limit=1)
BOUNDED = Contract(
    ("succeed", "fail", "yield", "release"),
    attempts=3,
    crash_limit=3,
    wait_seconds=10,
    delay_limit_seconds=15,
    cost_limit=2,
    until_evening=True,
)
PARENT = Contract(("succeed", "fail", "release"), attempts=2)
DATED = Contract(("succeed", "fail for good", "yield"), until_evening=True)
CHILD = Contract(("succeed",), parent=0)
MISHAPS = {"crashes": 1, "pauses": 1, "lost_answers": 1}


def explored(
    contracts: tuple[Contract, ...],
    may: dict[str, int],
    rules: Rules | None = None,
    *,
    grants_max: int = 3,
    depth_max: int = 1_000,
) -> Explored:
    """All that is reached when so many crashes, pauses and lost answers may happen."""
    authority = Authority(contracts, rules)
    return explore(authority, authority.begin(**may), grants_max=grants_max, depth_max=depth_max)


@pytest.mark.parametrize(
    ("contract", "may"),
    [
        pytest.param(RETRIED, {"crashes": 1, "pauses": 1}, id="crashes and pauses"),
        pytest.param(RETRIED, {"pauses": 1, "lost_answers": 1}, id="pauses and lost answers"),
        pytest.param(BOUNDED, {"crashes": 1, "pauses": 1}, id="cost, delay and a date"),
    ],
)
def test_one_job_and_two_workers_keep_the_promises_whatever_happens(contract: Contract, may: dict[str, int]) -> None:
    """Of everything that can happen to one job up to its third grant nothing is left out, and no order of events
    loses it, ends it twice, lets a stale holder in, answers a resend otherwise, leaves its contract or forgets its
    cancel (spec D-03, D-20, P-15, P-24, Promise 1, Promise 2, Promise 3, Promise 4, Promise 6, Promise 7)."""
    seen = explored((contract,), may)
    assert seen.whole
    assert seen.worlds > 1_000


@pytest.mark.parametrize("policy", Policy)
def test_a_child_keeps_the_promises_whatever_becomes_of_its_parent(policy: Policy) -> None:
    """A child ends by its parent's end and its own policy, or waits for a successor, in every order of events
    (spec A-08, P-25, Promise 1)."""
    parent, child = replace(PARENT, outcomes=("succeed", "fail")), replace(CHILD, policy=policy)
    assert explored((parent, child), {"crashes": 1, "pauses": 1}, grants_max=2).whole


def test_three_jobs_and_two_workers_keep_the_promises_to_a_depth() -> None:
    """A parent, its child and a job with a date, two workers, a crash and a session that is declared dead while its
    worker lives: every order of six events (Promise 1, Promise 2, Promise 3, Promise 6, Promise 7)."""
    seen = explored((PARENT, DATED, CHILD), {"crashes": 1, "pauses": 1}, depth_max=6)
    assert seen.depth == 6
    assert seen.worlds > 30_000


@pytest.mark.soak
@pytest.mark.parametrize(("may", "depth"), [({"crashes": 1, "pauses": 1}, 8), (MISHAPS, 7)], ids=str)
def test_three_jobs_and_two_workers_keep_the_promises_to_a_greater_depth(may: dict[str, int], depth: int) -> None:
    """The same for longer, and with answers that are lost (Promise 1, Promise 2, Promise 3, Promise 4, Promise 6,
    Promise 7)."""
    assert explored((PARENT, DATED, CHILD), may, depth_max=depth).depth == depth


def forgets_a_cancel(position: Position, outcome: Outcome, **given: Any) -> Move:
    """A retry wins over a cancel that was requested."""
    if isinstance(outcome, Fail) and position.state is State.CANCELLING:
        position = replace(position, state=State.RUNNING)
    return decide.settle(position, outcome, **given)


def spares_the_cost(position: Position, outcome: Outcome, **given: Any) -> Move:
    """What yields or is released may run again, whatever it has cost."""
    return decide.settle(replace(position, cost_limit=None), outcome, **given)


def counts_no_loss(position: Position, **given: Any) -> Move:
    """A job that kills its worker is tried for ever."""
    return replace(decide.expire(replace(position, crash_limit=99), **given), losses=0)


def spares_the_last_crash(position: Position, **given: Any) -> Move:
    """The crash limit is passed by one; a claim that looked would refuse the job even so."""
    return decide.expire(replace(position, crash_limit=position.crash_limit + 1), **given)


def leaves_it_running(_: Position, **__: Any) -> Move:
    """Nobody takes a job back from a holder that is gone."""
    return Move(State.RUNNING, EventType.LOST)


def loses_without_a_count(position: Position, outcome: Outcome, **given: Any) -> Move:
    """A job that kills what runs it is tried for ever, as long as its worker lives to tell."""
    move = decide.settle(replace(position, crash_limit=99), outcome, **given)
    return replace(move, losses=0)


def hears_no_failure(position: Position, parents: Inputs) -> Move | None:
    """A child is told only of parents that succeed."""
    return None if parents.broken else decide.inputs(position, parents)


def never_unfit(_: Position, **__: Any) -> str | None:
    """No date is too late."""
    return None


def open_door(_: World, __: object) -> bool:
    """Whoever reports is believed."""
    return True


def asks_the_epoch_only(world: World, run: Any) -> bool:
    """Who held the last grant is believed, whether it is over or not."""
    return bool(world.jobs[run.job].epoch == run.epoch)


def hears_too_late(position: Position, parents: Inputs) -> Move | None:
    """A child is made ready by its parent, even when it has ended before."""
    return Move(State.READY, EventType.PROMOTED) if position.state in TERMINAL else decide.inputs(position, parents)


def keeps_what_it_releases(position: Position, outcome: Outcome, **given: Any) -> Move:
    """What is released stays leased, to nobody."""
    return (
        Move(State.LEASED, EventType.RELEASED)
        if isinstance(outcome, Release)
        else decide.settle(position, outcome, **given)
    )


@pytest.mark.parametrize(
    ("promise", "rules", "contracts"),
    [
        pytest.param(promise, rules, contracts, id=f"{promise}: {name}")
        for promise, name, rules, contracts in [
            ("Promise 1", "a child hears of no failure", Rules(inputs=hears_no_failure), (PARENT, CHILD)),
            ("Promise 1", "nothing is taken back", Rules(expire=leaves_it_running), (RETRIED,)),
            ("Promise 2", "a child that has ended is made ready", Rules(inputs=hears_too_late), (PARENT, CHILD)),
            ("Promise 2", "what is released stays leased", Rules(settle=keeps_what_it_releases), (RETRIED,)),
            ("Promise 3", "no fence", Rules(holds=open_door), (RETRIED,)),
            ("Promise 3", "a fence without a lease", Rules(holds=asks_the_epoch_only), (RETRIED,)),
            ("Promise 4", "no receipts", Rules(keeps_receipts=False), (RETRIED,)),
            ("Promise 6", "a loss does not count", Rules(expire=counts_no_loss), (RETRIED,)),
            ("Promise 6", "a run is lost uncounted", Rules(settle=loses_without_a_count), (RETRIED,)),
            ("Promise 6", "a crash too many", Rules(expire=spares_the_last_crash, is_fit=never_unfit), (FRAGILE,)),
            ("Promise 6", "cost is not looked at", Rules(settle=spares_the_cost), (BOUNDED,)),
            ("Promise 6", "dates are not looked at", Rules(is_fit=never_unfit), (BOUNDED,)),
            ("Promise 7", "a retry outlives a cancel", Rules(settle=forgets_a_cancel), (RETRIED,)),
        ]
    ],
)
def test_a_broken_rule_is_found_and_told_as_the_shortest_way_to_it(
    promise: str, rules: Rules, contracts: tuple[Contract, ...]
) -> None:
    """The exploration can fail: each of these rules breaks the promise that it should, and the message has the
    events that led there (Promise 1, Promise 2, Promise 3, Promise 4, Promise 6, Promise 7)."""
    with pytest.raises(Broken, match=f"^{promise}: ") as broken:
        explored(contracts, MISHAPS, rules)
    assert str(broken.value).splitlines()[1].startswith("  1. ")
