"""The table of transitions is that of the spec, written here a second time, and nothing in it is dead."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest

from testigo.errors import StateConflict, Terminal
from testigo.rules import decide
from testigo.rules.decide import Inputs, Policy
from testigo.rules.states import LEASED, TERMINAL, State
from testigo.rules.transitions import DETAIL, TRANSITIONS, Command, EventType, edges, may, walk
from tests.rules.positions import COMMANDS, at, walked

A_05 = {
    "created": "inputs_pending ready cancelled",
    "inputs_pending": "ready permanent_failure cancelled",
    "ready": "leased cancelled superseded",
    "leased": "running ready cancelling",
    "running": "checkpointed retry_waiting blocked_by_quality cancelling"
    " succeeded succeeded_degraded permanent_failure",
    "checkpointed": "running retry_waiting cancelled",
    "retry_waiting": "ready permanent_failure cancelled",
    "blocked_by_quality": "ready superseded cancelled",
    "cancelling": "cancelled succeeded succeeded_degraded permanent_failure",
}
"""Spec A-05; and model.md: those through cancelling, and whatever waits may be cancelled at once."""

BY_COMMAND = {
    ("created", "admit"): "inputs_pending ready",
    ("created", "promote"): "inputs_pending ready",
    ("created", "cancel"): "cancelled",
    ("inputs_pending", "inputs"): "ready permanent_failure cancelled",
    ("inputs_pending", "retire"): "permanent_failure",
    ("inputs_pending", "cancel"): "cancelled",
    ("ready", "claim"): "leased",
    ("ready", "cancel"): "cancelled",
    ("ready", "supersede"): "superseded",
    ("leased", "start"): "running",
    ("leased", "release"): "ready",
    ("leased", "expire"): "ready",
    ("leased", "cancel"): "cancelling",
    ("running", "succeed"): "succeeded",
    ("running", "degrade"): "succeeded_degraded",
    ("running", "fail"): "retry_waiting permanent_failure",
    ("running", "block"): "blocked_by_quality",
    ("running", "yield"): "checkpointed",
    ("running", "release"): "checkpointed retry_waiting",
    ("running", "lose"): "retry_waiting permanent_failure",
    ("running", "expire"): "retry_waiting permanent_failure",
    ("running", "retire"): "permanent_failure",
    ("running", "cancel"): "cancelling",
    ("checkpointed", "claim"): "running",
    ("checkpointed", "retire"): "retry_waiting",
    ("checkpointed", "cancel"): "cancelled",
    ("retry_waiting", "promote"): "ready",
    ("retry_waiting", "retire"): "permanent_failure",
    ("retry_waiting", "cancel"): "cancelled",
    ("blocked_by_quality", "unblock"): "ready",
    ("blocked_by_quality", "cancel"): "cancelled",
    ("blocked_by_quality", "supersede"): "superseded",
    ("cancelling", "succeed"): "succeeded",
    ("cancelling", "degrade"): "succeeded_degraded",
    ("cancelling", "fail"): "permanent_failure cancelled",
    ("cancelling", "block"): "cancelled",
    ("cancelling", "yield"): "cancelled",
    ("cancelling", "release"): "cancelled",
    ("cancelling", "lose"): "cancelled",
    ("cancelling", "expire"): "cancelled",
}
"""Which command may walk which of them (spec P-24, P-25, model.md); a pair that is absent has no edge."""

BY_SQL = {("ready", "claim", "leased"), ("checkpointed", "claim", "running")}
"""What a claim walks: its one statement decides, since it takes any number of jobs at once (spec P-12)."""

HOLDERS = {"start", "succeed", "degrade", "fail", "block", "yield", "release", "lose"}


def test_the_edges_are_exactly_those_of_the_spec() -> None:
    """Between any two states there is an edge just where the spec has one (spec A-05)."""
    table: dict[str, set[str]] = {}
    for edge in TRANSITIONS:
        table.setdefault(edge.source, set()).add(edge.target)
    assert table == {source: set(targets.split()) for source, targets in A_05.items()}


@pytest.mark.parametrize(("state", "command"), list(product(State, Command)), ids="-".join)
def test_a_command_walks_its_edges_and_is_refused_everywhere_else(state: State, command: Command) -> None:
    """Of all states and commands, those that the spec joins lead where it says; any other is refused, as
    terminal where the job has ended (spec A-05, A-06)."""
    legal = set(BY_COMMAND.get((state, command), "").split())
    assert {edge.target for edge in edges(state, command)} == legal
    assert may(state, command) == bool(legal)
    for target in State:
        if target in legal:
            assert walk(state, command, [(command, target)]).target is target
        else:
            with pytest.raises(StateConflict) as refused:
                walk(state, command, [(command, target)])
            assert type(refused.value) is (Terminal if state in TERMINAL else StateConflict)
            assert refused.value.facts == {"state": state, "command": command}


def test_no_edge_is_written_twice() -> None:
    """Source, command and target name one row."""
    assert len({(edge.source, edge.command, edge.target) for edge in TRANSITIONS}) == len(TRANSITIONS)


def test_only_a_holder_walks_the_edges_that_need_a_lease() -> None:
    """What needs the lease starts from a state that has one and is a holder's own word; nobody else's is
    (spec D-03)."""
    for edge in TRANSITIONS:
        assert edge.leased == (edge.command in HOLDERS)
        assert edge.source in LEASED or not edge.leased


def test_an_end_tells_which_end_it_is() -> None:
    """Whatever walks into a terminal state, its event is the one of that state, and never a detail (spec P-27)."""
    told = {state: {edge.event for edge in TRANSITIONS if edge.target is state} for state in TERMINAL}
    assert told == {
        State.SUCCEEDED: {EventType.COMPLETED},
        State.SUCCEEDED_DEGRADED: {EventType.DEGRADED},
        State.PERMANENT_FAILURE: {EventType.FAILED},
        State.CANCELLED: {EventType.CANCELLED},
        State.SUPERSEDED: {EventType.SUPERSEDED},
    }
    assert DETAIL.isdisjoint(set().union(*told.values()))


def test_a_walk_needs_every_edge_and_one_of_its_own() -> None:
    """A walk stops at the first edge that is not there, and tells of the last that its own command walks
    (spec A-05)."""
    through = [(Command.FAIL, State.RETRY_WAITING), (Command.PROMOTE, State.READY)]
    assert walk(State.RUNNING, Command.FAIL, through).event is EventType.FAILED
    with pytest.raises(StateConflict, match="`start` does not apply to a job that is retry_waiting"):
        walk(State.RUNNING, Command.FAIL, [through[0], (Command.START, State.RUNNING)])
    with pytest.raises(Terminal, match="`promote` does not apply to a job that is succeeded"):
        walk(State.RUNNING, Command.SUCCEED, [(Command.SUCCEED, State.SUCCEEDED), (Command.PROMOTE, State.READY)])
    with pytest.raises(StateConflict, match="no edge of its own"):
        walk(State.RETRY_WAITING, Command.FAIL, [(Command.PROMOTE, State.READY)])
    with pytest.raises(StateConflict, match="no edge of its own"):
        walk(State.RUNNING, Command.FAIL, [])


def test_every_edge_is_walked_by_some_decision() -> None:
    """No row of the table is dead: the decisions walk all of them, but for the two of a claim (spec A-05)."""
    with walked() as seen:
        for state in State:
            decide_everything(state)
    assert {tuple(map(str, edge)) for edge in seen} | BY_SQL == {
        (edge.source, edge.command, edge.target) for edge in TRANSITIONS
    }


def decide_everything(state: State) -> None:
    """Every decision about a job in this state, with and without parents, fresh and with its budget spent."""
    fresh, spent = at(state), at(state, failures=2, losses=2, has_checkpoint=True)
    for position, command in product((fresh, spent), COMMANDS.values()):
        with suppress(StateConflict):
            command(position)
    for parents in (Inputs(0), Inputs(1), Inputs(0, [Policy.FAIL]), Inputs(0, [Policy.CANCEL])):
        decide.inputs(fresh, parents)
        with suppress(StateConflict):
            decide.admit(fresh, parents, due=True)
        with suppress(StateConflict):
            decide.promote(fresh, parents)
