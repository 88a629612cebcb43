"""What each command does to a job: one pure function per command, each from a `Position` to a `Move`.

A `Position` is what was read; a `Move` is what shall be written, if the job is still where it was
read (compare-and-set; spec B-05). No clock, no randomness: `now` and `draw` are arguments. A
command that has no edge from the job's state raises `Terminal` or `StateConflict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from testigo.errors import StateConflict
from testigo.rules.graph import Policy
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, Succeed, Yield
from testigo.rules.retries import Backoff, Budget, Exhausted, Spent, after_failure, after_loss, exhausted
from testigo.rules.states import LEASED, TERMINAL, State
from testigo.rules.text import tidy
from testigo.rules.transitions import Command, EventType, walk

__all__ = [
    "Inputs",
    "Move",
    "Policy",
    "Position",
    "admit",
    "cancel",
    "expire",
    "inputs",
    "is_fit",
    "promote",
    "retire",
    "settle",
    "start",
    "supersede",
    "unblock",
]


@dataclass(frozen=True, slots=True)
class Position:
    """What the rules need to know of a job; times are UTC, durations seconds."""

    state: State
    failures: int
    losses: int
    waited_seconds: float
    cost: float
    attempts: int
    crash_limit: int
    delay_limit_seconds: float | None
    cost_limit: float | None
    start_by: datetime | None
    finish_by: datetime | None
    backoff: Backoff
    has_checkpoint: bool = False
    runs: int = 0

    @property
    def budget(self) -> Budget:
        """The contract's bounds on retries."""
        return Budget(self.attempts, self.crash_limit, self.delay_limit_seconds, self.cost_limit, self.finish_by)

    @property
    def spent(self) -> Spent:
        """What the job has spent of them so far."""
        return Spent(self.failures, self.losses, self.waited_seconds, self.cost)


@dataclass(frozen=True, slots=True)
class Move:
    """What a command changes: the state it ends in, what the journal says, what is counted.

    `wait_seconds` is None unless the job now waits for its time. `epochs` is 1 where the system grants
    the job to itself in passing. `reason` is the stable word that `explain` shows for a job that
    ended or is blocked.
    """

    target: State
    event: EventType
    wait_seconds: float | None = None
    failures: int = 0
    losses: int = 0
    releases: int = 0
    epochs: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """How a job's parents stand: how many are open, and how those that failed for good are to count."""

    open: int
    broken: Sequence[Policy] = ()

    @property
    def hold(self) -> bool:
        """Whether the job has to wait for any of them."""
        return self.open > 0 or any(policy is not Policy.RUN for policy in self.broken)

    @property
    def end(self) -> bool:
        """Whether the job ends by any of them."""
        return Policy.FAIL in self.broken or Policy.CANCEL in self.broken


def admit(position: Position, parents: Inputs, *, due: bool) -> Move:
    """Accept a submitted job: it waits for its time, for its parents, or it is ready (spec P-11, P-25).

    One that a parent's failure ends is accepted first; `inputs` then ends it, as its own fact.
    """
    target = State.INPUTS_PENDING if parents.hold else State.READY
    move = _move(position, Command.ADMIT, [(Command.ADMIT, target)])
    return move if due or parents.end else replace(move, target=State.CREATED)


def promote(position: Position, parents: Inputs) -> Move:
    """Move on what has waited long enough (spec P-13)."""
    waits = position.state is State.CREATED and parents.hold
    target = State.INPUTS_PENDING if waits else State.READY
    return _move(position, Command.PROMOTE, [(Command.PROMOTE, target)])


def inputs(position: Position, parents: Inputs) -> Move | None:
    """Judge a child again when a parent has ended; None when it goes on waiting (spec A-08, P-25).

    A child that waits for its time keeps waiting for it, unless a parent's failure ends it. The
    strictest policy wins: one parent that says fail outweighs one that says cancel.
    """
    before = [(Command.PROMOTE, State.INPUTS_PENDING)] if position.state is State.CREATED else []
    if position.state not in (State.CREATED, State.INPUTS_PENDING):
        return None
    if parents.end:
        fails = Policy.FAIL in parents.broken
        target = State.PERMANENT_FAILURE if fails else State.CANCELLED
        return _move(position, Command.INPUTS, [*before, (Command.INPUTS, target)], reason="parent")
    if before or parents.hold:
        return None
    return _move(position, Command.INPUTS, [(Command.INPUTS, State.READY)])


def is_fit(position: Position, *, now: datetime) -> str | None:
    """Why a waiting job must not be started any more, or None (spec P-24, field case R50).

    `start_by` is a date for the first run; `finish_by` is one for every run.
    """
    if position.runs == 0 and position.start_by is not None and now > position.start_by:
        return "start_by"
    if position.finish_by is not None and now > position.finish_by:
        return "finish_by"
    if position.failures >= position.attempts:
        return "attempts"
    if position.losses >= position.crash_limit:
        return "crashes"
    return None


def start(position: Position) -> Move:
    """Begin the run of a leased job."""
    return _move(position, Command.START, [(Command.START, State.RUNNING)])


def settle(position: Position, outcome: Outcome, *, draw: float, now: datetime) -> Move:
    """End a run as its holder reports. A cancel that was requested wins over any wish to go on, and so does
    a budget that is spent: the job ends, for nothing may run it again (Promise 6).

    `draw` is in [0, 1), for the jitter of the wait; `position.cost` already holds this run's cost.
    """
    if position.state is State.LEASED and not isinstance(outcome, Release):
        started = walk(State.LEASED, Command.START, [(Command.START, State.RUNNING)])
        position = replace(position, state=started.target)
    cancelling = position.state is State.CANCELLING
    match outcome:
        case Succeed():
            return _move(position, Command.SUCCEED, [(Command.SUCCEED, State.SUCCEEDED)])
        case Degrade():
            return _move(position, Command.DEGRADE, [(Command.DEGRADE, State.SUCCEEDED_DEGRADED)])
        case Fail():
            return _fail(position, outcome, draw=draw, now=now)
        case Block():
            if cancelling:
                return _move(position, Command.BLOCK, [(Command.BLOCK, State.CANCELLED)], reason="cancelled")
            blocked = [(Command.BLOCK, State.BLOCKED_BY_QUALITY)]
            return _move(position, Command.BLOCK, blocked, reason=tidy(outcome.reason))
        case Yield():
            return _give_back(position, Command.YIELD, keeps=True, now=now)
        case Release():
            keeps = position.has_checkpoint or outcome.checkpoint is not None
            return _give_back(position, Command.RELEASE, keeps=keeps, now=now)
        case Lose():
            return _lose(position, Command.LOSE, now=now)
        case _:
            assert_never(outcome)


def expire(position: Position, *, now: datetime) -> Move:
    """Take a job back from a holder that is gone (spec P-18, P-24, model.md).

    What was running is a loss; at the crash limit it ends. What was only leased returns unharmed.
    """
    if position.state is State.LEASED:
        return _move(position, Command.EXPIRE, [(Command.EXPIRE, State.READY)])
    return _lose(position, Command.EXPIRE, now=now)


def retire(position: Position, reason: str) -> Move:
    """End, as the system, a job that must not start any more (spec P-24).

    What is owned is refused: its holder ends it, or the sweep that takes it back.
    """
    if position.state in LEASED:
        raise StateConflict(
            f"A job that is {position.state} has an owner.", state=str(position.state), command=str(Command.RETIRE)
        )
    end = (Command.RETIRE, State.PERMANENT_FAILURE)
    steps = {
        State.READY: [(Command.CLAIM, State.LEASED), (Command.START, State.RUNNING), end],
        State.CHECKPOINTED: [(Command.RETIRE, State.RETRY_WAITING), end],
        State.CREATED: [(Command.PROMOTE, State.INPUTS_PENDING), end],
    }.get(position.state, [end])
    granted = 1 if steps[0][0] is Command.CLAIM else 0
    return replace(_move(position, Command.RETIRE, steps, reason=reason), epochs=granted)


def cancel(position: Position) -> Move:
    """Cancel at once what nobody owns; ask the holder of what is owned (spec D-20, model.md)."""
    target = State.CANCELLING if position.state in LEASED else State.CANCELLED
    return _move(position, Command.CANCEL, [(Command.CANCEL, target)], reason="cancelled")


def unblock(position: Position) -> Move:
    """Send a blocked job back to work, after new evidence or configuration (spec A-13, B-14)."""
    return _move(position, Command.UNBLOCK, [(Command.UNBLOCK, State.READY)])


def supersede(position: Position) -> Move | None:
    """Make room for a successor; None when the job has ended, since what has ended stays (spec A-06)."""
    if position.state in TERMINAL:
        return None
    return _move(position, Command.SUPERSEDE, [(Command.SUPERSEDE, State.SUPERSEDED)], reason="superseded")


def _fail(position: Position, outcome: Fail, *, draw: float, now: datetime) -> Move:
    if outcome.permanent:
        ended = [(Command.FAIL, State.PERMANENT_FAILURE)]
        return _move(position, Command.FAIL, ended, failures=1, reason="permanent")
    if position.state is State.CANCELLING:
        return _move(position, Command.FAIL, [(Command.FAIL, State.CANCELLED)], failures=1, reason="cancelled")
    spent = replace(position.spent, failures=position.failures + 1)
    after = after_failure(
        position.budget, spent, position.backoff, draw=draw, now=now, asked_seconds=outcome.wait_seconds
    )
    if isinstance(after, Exhausted):
        ended = [(Command.FAIL, State.PERMANENT_FAILURE)]
        return _move(position, Command.FAIL, ended, failures=1, reason=str(after.reason))
    steps = [(Command.FAIL, State.RETRY_WAITING)]
    if after.wait_seconds > 0:
        return _move(position, Command.FAIL, steps, failures=1, wait_seconds=after.wait_seconds)
    return _move(position, Command.FAIL, [*steps, (Command.PROMOTE, State.READY)], failures=1)


def _lose(position: Position, command: Command, *, now: datetime) -> Move:
    if position.state is State.CANCELLING:
        return _move(position, command, [(command, State.CANCELLED)], reason="cancelled")
    spent = replace(position.spent, losses=position.losses + 1)
    after = after_loss(position.budget, spent, now=now)
    if isinstance(after, Exhausted):
        ended = [(command, State.PERMANENT_FAILURE)]
        return _move(position, command, ended, losses=1, reason=str(after.reason))
    return _move(position, command, [(command, State.RETRY_WAITING), (Command.PROMOTE, State.READY)], losses=1)


def _give_back(position: Position, command: Command, *, keeps: bool, now: datetime) -> Move:
    if position.state is State.CANCELLING:
        return _move(position, command, [(command, State.CANCELLED)], reason="cancelled")
    if position.state is State.LEASED:
        return _move(position, command, [(command, State.READY)])
    steps = [(command, State.CHECKPOINTED if keeps else State.RETRY_WAITING)]
    end = exhausted(position.budget, position.spent, now=now)
    if end is not None:
        # No claim knows what a job has cost, so one that may not run again never becomes claimable.
        waits = [(Command.RETIRE, State.RETRY_WAITING)] if keeps else []
        ended = [*steps, *waits, (Command.RETIRE, State.PERMANENT_FAILURE)]
        return _move(position, Command.RETIRE, ended, releases=1, reason=str(end.reason))
    if not keeps:
        steps.append((Command.PROMOTE, State.READY))
    return _move(position, command, steps, releases=1)


def _move(
    position: Position,
    command: Command,
    steps: Sequence[tuple[Command, State]],
    *,
    wait_seconds: float | None = None,
    failures: int = 0,
    losses: int = 0,
    releases: int = 0,
    reason: str | None = None,
) -> Move:
    edge = walk(position.state, command, steps)
    return Move(steps[-1][1], edge.event, wait_seconds, failures, losses, releases, reason=reason)
