"""The states and their words are those of the model, written here a second time."""

from __future__ import annotations

import re
from importlib.resources import files

from testigo.rules.states import CLAIMABLE, EXPRESS, LEASED, PHASES, TERMINAL, WAITING, State
from testigo.rules.transitions import TRANSITIONS

MODEL = """
    state               phase       express            lease  terminal
    created             queued      -                  no     no
    inputs_pending      queued      -                  no     no
    ready               queued      pending            no     no
    leased              leased      reserved           yes    no
    running             running     processing         yes    no
    checkpointed        queued      -                  no     no
    retry_waiting       queued      pending (delayed)  no     no
    blocked_by_quality  queued      -                  no     no
    cancelling          cancelling  -                  yes    no
    succeeded           completed   completed          no     yes
    succeeded_degraded  completed   completed          no     yes
    permanent_failure   failed      failed_jobs        no     yes
    cancelled           cancelled   -                  no     yes
    superseded          cancelled   -                  no     yes
"""


def test_the_states_and_their_phases_are_those_of_the_model() -> None:
    """Thirteen states and `cancelling`, each with its phase, its express word, and whether it is owned or over
    (spec A-04, C-01, D-02)."""
    table = [re.split(r"\s{2,}", line.strip()) for line in MODEL.strip().splitlines()[1:]]
    yes = {True: "yes", False: "no"}
    assert [list(row) for row in table] == [
        [str(state), str(PHASES[state]), EXPRESS.get(state, "-"), yes[state in LEASED], yes[state in TERMINAL]]
        for state in State
    ]


def test_every_state_is_waiting_owned_or_over() -> None:
    """A job waits, is owned or has ended, never two of them; what may be claimed waits (spec D-02, P-13)."""
    assert sorted([*WAITING, *LEASED, *TERMINAL]) == sorted(State)
    assert CLAIMABLE <= WAITING
    assert {"ready", "checkpointed"} == CLAIMABLE


def test_what_has_ended_has_no_way_out_and_all_else_has_one() -> None:
    """No edge leaves a terminal state, and from every other state some walk leads to each end that its
    kind may have; so no job is stuck (spec A-06, Promise 1)."""
    assert {edge.source for edge in TRANSITIONS} == frozenset(State) - TERMINAL
    reach = {state: {edge.target for edge in TRANSITIONS if edge.source is state} for state in State}
    for _ in State:
        reach = {state: near.union(*(reach[next_] for next_ in near)) for state, near in reach.items()}
    for state in frozenset(State) - TERMINAL:
        ends = TERMINAL - {State.SUPERSEDED} if state is State.CANCELLING else TERMINAL
        assert reach[state] & TERMINAL == ends, state


def test_the_database_knows_the_same_states() -> None:
    """The type in SQL has these states, and its trigger guards exactly what has ended (spec A-04, A-06)."""
    sql = (files("testigo.store") / "migrations" / "versions" / "0001_authority.sql").read_text("utf-8")
    (states,) = re.findall(r"CREATE TYPE testigo\.job_state AS ENUM \((.*?)\)", sql, re.DOTALL)
    assert re.findall(r"'(\w+)'", states) == [str(state) for state in State]
    (final,) = re.findall(r"WHEN \(OLD\.state IN \((.*?)\)\)", sql)
    assert set(re.findall(r"'(\w+)'", final)) == TERMINAL
