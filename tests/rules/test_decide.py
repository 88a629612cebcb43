"""Every state and every decision: what is legal leads where the spec says, the rest is refused.

What a run's end does in detail is in `test_decide_settle.py`, what waiting jobs do in `test_decide_waiting.py`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import StateConflict, Terminal
from testigo.rules import decide
from testigo.rules.decide import Move, Position
from testigo.rules.retries import exhausted
from testigo.rules.states import CLAIMABLE, TERMINAL, WAITING, State
from testigo.rules.transitions import TRANSITIONS
from tests.rules.positions import COMMANDS, NOW, OUTCOMES, at, positions, walked

MOVES: dict[str, dict[str, str]] = {
    "admit": {"created": "ready"},
    "admit early": {"created": "created"},
    "promote": {"created": "ready", "retry_waiting": "ready"},
    "inputs": {"inputs_pending": "ready"},
    "start": {"leased": "running"},
    "succeed": dict.fromkeys(("leased", "running", "cancelling"), "succeeded"),
    "degrade": dict.fromkeys(("leased", "running", "cancelling"), "succeeded_degraded"),
    "fail": {"leased": "retry_waiting", "running": "retry_waiting", "cancelling": "cancelled"},
    "fail for good": dict.fromkeys(("leased", "running", "cancelling"), "permanent_failure"),
    "block": {"leased": "blocked_by_quality", "running": "blocked_by_quality", "cancelling": "cancelled"},
    "yield": {"leased": "checkpointed", "running": "checkpointed", "cancelling": "cancelled"},
    "release": {"leased": "ready", "running": "ready", "cancelling": "cancelled"},
    "release with a checkpoint": {"leased": "ready", "running": "checkpointed", "cancelling": "cancelled"},
    "lose": {"leased": "ready", "running": "ready", "cancelling": "cancelled"},
    "expire": {"leased": "ready", "running": "ready", "cancelling": "cancelled"},
    "retire": dict.fromkeys(
        ("created", "inputs_pending", "ready", "checkpointed", "retry_waiting"), "permanent_failure"
    ),
    "cancel": {**dict.fromkeys(WAITING, "cancelled"), "leased": "cancelling", "running": "cancelling"},
    "unblock": {"blocked_by_quality": "ready"},
    "supersede": {"ready": "superseded", "blocked_by_quality": "superseded"},
}
"""What each decision makes of a job whose budgets are open and whose parents are fulfilled (spec A-05, D-02, D-20,
P-24, model.md); what is not here is refused."""

LEFT_ALONE = {
    "inputs": set(State) - {State.INPUTS_PENDING},
    "supersede": TERMINAL,
}
"""Where a decision changes nothing and says so: who does not wait for parents, and what has ended already."""

commands = st.sampled_from(list(COMMANDS))


@pytest.mark.parametrize(("state", "command"), list(product(State, COMMANDS)), ids=" ".join)
def test_a_decision_leads_where_the_spec_says_and_is_refused_everywhere_else(state: State, command: str) -> None:
    """Of every state and every command, exactly the legal ones move a job; the others are refused, as terminal
    where it has ended (spec A-05, A-06, D-03)."""
    target = MOVES[command].get(state)
    if state in LEFT_ALONE.get(command, ()):
        assert COMMANDS[command](at(state)) is None
    elif target is not None:
        move = COMMANDS[command](at(state))
        assert move is not None
        assert move.target == target
    else:
        with pytest.raises(StateConflict) as refused:
            COMMANDS[command](at(state))
        assert type(refused.value) is (Terminal if state in TERMINAL else StateConflict)


@given(positions.filter(lambda position: position.state in TERMINAL), commands)
def test_what_has_ended_never_moves(position: Position, command: str) -> None:
    """Whatever its counts, dates and contract, a terminal job is refused or left alone (spec A-06)."""
    assert move_of(command, position) is None


@given(positions, commands)
def test_a_move_is_a_walk_through_the_table(position: Position, command: str) -> None:
    """Any move of any job is a chain of edges, each in the table, from where it stood to where it ends, and its
    event is that of one of them; only an early job stays where it is (spec A-05, P-24)."""
    with walked() as edges:
        move = move_of(command, position)
    if move is None or command == "admit early":
        return
    events = {(edge.source, edge.command, edge.target): edge.event for edge in TRANSITIONS}
    assert set(edges) <= set(events)
    assert edges[0][0] is position.state
    assert edges[-1][2] is move.target
    assert all(before[2] is then[0] for before, then in pairwise(edges))
    assert move.event in {events[edge] for edge in edges}


@given(positions, commands)
def test_a_move_counts_one_thing_at_most(position: Position, command: str) -> None:
    """A failure, a loss and a release are three counts, and no move raises two of them or any by two; only
    what the system ends from the ready queue is granted in passing (spec P-24, model.md)."""
    move = move_of(command, position)
    if move is None:
        return
    assert move.failures + move.losses + move.releases <= 1
    assert move.failures == (command in ("fail", "fail for good"))
    lost = {"expire": {State.RUNNING}, "lose": {State.LEASED, State.RUNNING}}
    assert move.losses == (position.state in lost.get(command, ()))
    assert move.epochs == (command == "retire" and position.state is State.READY)


@given(positions, commands)
def test_only_what_waits_for_its_time_has_a_wait(position: Position, command: str) -> None:
    """A move has a wait just when the job now waits for its time, and then it is no wait of zero: that one is
    walked through to ready (spec P-13)."""
    move = move_of(command, position)
    if move is not None:
        assert (move.wait_seconds is not None) == (move.target is State.RETRY_WAITING)
        assert move.wait_seconds is None or move.wait_seconds > 0


@given(positions, st.data())
def test_no_sequence_of_commands_leaves_the_contract(position: Position, data: st.DataObject) -> None:
    """However commands follow each other, failures stay within attempts, losses within the crash limit and
    waits within the delay limit, and what has run goes back to the queue only while each of them and the
    cost allow another run (spec A-14, D-04, Promise 6)."""
    position = replace(position, state=State.CREATED, failures=0, losses=0, waited_seconds=0.0, cost=0.0, runs=0)
    for _ in range(data.draw(st.integers(0, 40))):
        before, position = position, step(position, data)
        assert position.failures <= position.attempts
        assert position.losses <= position.crash_limit
        assert position.delay_limit_seconds is None or position.waited_seconds <= position.delay_limit_seconds
        if before.state is State.RUNNING and position.state in CLAIMABLE:
            assert exhausted(position.budget, position.spent, now=NOW) is None


def step(position: Position, data: st.DataObject) -> Position:
    """The job after one more thing that its state allows; a run's end costs something."""
    if position.state in CLAIMABLE and decide.is_fit(position, now=NOW) is None and data.draw(st.booleans()):
        granted = State.LEASED if position.state is State.READY else State.RUNNING
        return replace(position, state=granted, runs=position.runs + 1)
    legal = [command for command, targets in MOVES.items() if position.state in targets]
    command = data.draw(st.sampled_from(legal)) if legal else "inputs"
    if command in OUTCOMES:
        position = replace(position, cost=position.cost + data.draw(st.floats(0, 5)))
    move = COMMANDS[command](position)
    return position if move is None else written(position, move)


def written(position: Position, move: Move) -> Position:
    """The job as the authority writes it."""
    return replace(
        position,
        state=move.target,
        failures=position.failures + move.failures,
        losses=position.losses + move.losses,
        waited_seconds=position.waited_seconds + (move.wait_seconds or 0.0),
        runs=position.runs + move.epochs,
    )


def move_of(command: str, position: Position) -> Move | None:
    """What the decision makes of this job; None when it is refused or left alone."""
    try:
        return COMMANDS[command](position)
    except StateConflict:
        return None
