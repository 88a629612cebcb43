"""Jobs at any place of the state machine, as the tests of the rules describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from testigo.rules import decide, transitions
from testigo.rules.decide import Inputs, Move, Position
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, Succeed, Yield
from testigo.rules.retries import Constant, Exponential, Listed
from testigo.rules.states import State
from testigo.rules.transitions import Command, Transition

__all__ = ["COMMANDS", "NOW", "OUTCOMES", "at", "outcomes", "positions", "settled", "walked"]

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)

OUTCOMES: dict[str, Outcome] = {
    "succeed": Succeed(),
    "degrade": Degrade(Document("1"), ("half",)),
    "fail": Fail("E", "again, later"),
    "fail for good": Fail("E", "never", permanent=True),
    "block": Block("approval"),
    "yield": Yield(Document("1")),
    "release": Release(),
    "release with a checkpoint": Release(checkpoint=Document("1")),
    "lose": Lose("RUNNER_DIED", "signal 9"),
}
"""One outcome of each kind that the rules tell apart."""


def at(state: State, **given: Any) -> Position:
    """A job in this state that has spent nothing of an ordinary contract, but for what is given."""
    ordinary: dict[str, Any] = {
        "failures": 0,
        "losses": 0,
        "waited_seconds": 0.0,
        "cost": 0.0,
        "attempts": 3,
        "crash_limit": 3,
        "delay_limit_seconds": None,
        "cost_limit": None,
        "start_by": None,
        "finish_by": None,
        "backoff": Constant(60),
    }
    return Position(state=state, **ordinary | given)


def settled(position: Position, outcome: Outcome, *, draw: float = 0.5, now: datetime = NOW) -> Move:
    """What a holder's report does to a job."""
    return decide.settle(position, outcome, draw=draw, now=now)


COMMANDS: dict[str, Callable[[Position], Move | None]] = {
    "admit": lambda position: decide.admit(position, Inputs(0), due=True),
    "admit early": lambda position: decide.admit(position, Inputs(0), due=False),
    "promote": lambda position: decide.promote(position, Inputs(0)),
    "inputs": lambda position: decide.inputs(position, Inputs(0)),
    "start": decide.start,
    **{name: partial(settled, outcome=outcome) for name, outcome in OUTCOMES.items()},
    "expire": lambda position: decide.expire(position, now=NOW),
    "retire": lambda position: decide.retire(position, "start_by"),
    "cancel": decide.cancel,
    "unblock": decide.unblock,
    "supersede": decide.supersede,
}
"""Every decision, with nothing that stands in its way: no parents, no date, no draw."""


@contextmanager
def walked() -> Iterator[list[tuple[State, Command, State]]]:
    """Notes every edge that a decision walks while this is open, in order."""
    edges: list[tuple[State, Command, State]] = []

    def walk(source: State, command: Command, steps: Sequence[tuple[Command, State]]) -> Transition:
        own = transitions.walk(source, command, steps)
        sources = [source, *(target for _, target in steps)]
        edges.extend((here, step, target) for here, (step, target) in zip(sources, steps, strict=False))
        return own

    with mock.patch.object(decide, "walk", walk):
        yield edges


_seconds = st.floats(0, 3600)
_dates = st.none() | st.integers(-3600, 3600).map(lambda seconds: NOW + timedelta(seconds=seconds))

outcomes: st.SearchStrategy[Outcome] = st.sampled_from(list(OUTCOMES.values())) | st.builds(
    Fail, code=st.just("E"), message=st.just(""), permanent=st.booleans(), wait_seconds=st.none() | _seconds
)
"""Any outcome."""

positions = st.builds(
    Position,
    state=st.sampled_from(State),
    failures=st.integers(0, 4),
    losses=st.integers(0, 4),
    waited_seconds=_seconds,
    cost=st.floats(0, 10),
    attempts=st.integers(1, 5),
    crash_limit=st.integers(1, 5),
    delay_limit_seconds=st.none() | _seconds,
    cost_limit=st.none() | st.floats(0, 10),
    start_by=_dates,
    finish_by=_dates,
    backoff=st.builds(Constant, _seconds)
    | st.builds(Listed, st.tuples(_seconds, _seconds))
    | st.builds(Exponential, st.floats(0, 60), st.floats(60, 3600)),
    has_checkpoint=st.booleans(),
    runs=st.integers(0, 6),
)
"""Any job, also one that no sequence of commands leads to."""
