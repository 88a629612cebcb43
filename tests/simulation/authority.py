"""The authority of a small world: it compares session, lease and epoch, asks the real rules, and sets."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from testigo.errors import StateConflict
from testigo.rules import decide
from testigo.rules.decide import Inputs, Move, Policy, Position
from testigo.rules.retries import Constant
from testigo.rules.states import TERMINAL, State
from testigo.rules.transitions import EventType
from tests.simulation.small_world import (
    EVENING,
    FULFILLED,
    NOON,
    OUTCOMES,
    SESSIONS,
    WORKERS,
    Contract,
    Job,
    Run,
    World,
    moved,
)

__all__ = ["Authority", "Rules"]

Decided = TypeVar("Decided")

FAST = Move(State.SUCCEEDED, EventType.COMPLETED)
"""What the fast path of a settle writes under the newest revision, without asking a rule."""


def holds(world: World, run: Run) -> bool:
    """The fence: the session is open, and the job is granted to it under this epoch."""
    job = world.jobs[run.job]
    return run.lease in world.open and (job.lease, job.epoch) == (run.lease, run.epoch)


@dataclass(frozen=True)
class Rules:
    """The decisions, the fence, and whether receipts are kept; a test replaces one to see that it is missed."""

    promote: Callable[..., Move] = decide.promote
    inputs: Callable[..., Move | None] = decide.inputs
    is_fit: Callable[..., str | None] = decide.is_fit
    start: Callable[..., Move] = decide.start
    settle: Callable[..., Move] = decide.settle
    expire: Callable[..., Move] = decide.expire
    retire: Callable[..., Move] = decide.retire
    cancel: Callable[..., Move] = decide.cancel
    unblock: Callable[..., Move] = decide.unblock
    holds: Callable[[World, Run], bool] = holds
    keeps_receipts: bool = True


class Authority:
    """Decides by the rules and writes what was decided; every decision is made once and remembered."""

    def __init__(self, contracts: tuple[Contract, ...], rules: Rules | None = None) -> None:
        self.contracts = contracts
        self.rules = rules or Rules()
        self._parents = {contract.parent for contract in contracts}
        self._decided: dict[Hashable, Any] = {}

    def begin(self, *, crashes: int = 0, pauses: int = 0, lost_answers: int = 0) -> World:
        """The first moment: every job is admitted, and two workers have opened their sessions."""
        jobs = [Job(State.READY if contract.parent is None else State.INPUTS_PENDING) for contract in self.contracts]
        return World(tuple(jobs), WORKERS, SESSIONS, crashes=crashes, pauses=pauses, lost_answers=lost_answers)

    def is_unfit(self, number: int, job: Job, *, evening: bool) -> str | None:
        """Why the job must not be started any more, if so."""
        return self._once(
            ("is_fit", number, job, evening),
            lambda: self.rules.is_fit(self._position(number, job), now=EVENING if evening else NOON),
        )

    def expire(self, number: int, job: Job, *, evening: bool) -> Move:
        """What becomes of a job whose holder is gone."""
        return self._once(
            ("expire", number, job, evening),
            lambda: self.rules.expire(self._position(number, job), now=EVENING if evening else NOON),
        )

    def settle(self, number: int, job: Job, outcome: str, *, evening: bool) -> Move:
        """What becomes of a job whose holder reports this; the run's cost is in it already."""
        now = EVENING if evening else NOON
        return self._once(
            ("settle", number, job, outcome, evening),
            lambda: self.rules.settle(self._position(number, job), OUTCOMES[outcome], draw=0.0, now=now),
        )

    def inputs(self, number: int, job: Job, *broken: Policy) -> Move | None:
        """What becomes of a child whose parent has ended, broken for good under this policy or fulfilled."""
        return self._once(
            ("inputs", number, job, broken),
            lambda: self.rules.inputs(self._position(number, job), Inputs(0, broken)),
        )

    def promote(self, number: int, job: Job) -> Move:
        """What becomes of a job whose time has come."""
        return self._once(("promote", number, job), lambda: self.rules.promote(self._position(number, job), Inputs(0)))

    def retire(self, number: int, job: Job, reason: str) -> Move:
        """What becomes of a job that must not be started any more."""
        return self._once(
            ("retire", number, job, reason), lambda: self.rules.retire(self._position(number, job), reason)
        )

    def start(self, number: int, job: Job) -> Move:
        """What becomes of a leased job when its run begins."""
        return self._once(("start", number, job), lambda: self.rules.start(self._position(number, job)))

    def cancel(self, number: int, job: Job) -> Move:
        """What becomes of a job when its cancel is requested."""
        return self._once(("cancel", number, job), lambda: self.rules.cancel(self._position(number, job)))

    def unblock(self, number: int, job: Job) -> Move:
        """What becomes of a blocked job when what it needs is there."""
        return self._once(("unblock", number, job), lambda: self.rules.unblock(self._position(number, job)))

    def report(self, world: World, run: Run, outcome: str) -> tuple[World, str]:
        """A settle arrives: the fence, then the fast path, which asks no rule, or the slow one."""
        if not self.rules.holds(world, run):
            return world, "late"
        job = world.jobs[run.job]
        cost = 0 if outcome == "release" and job.state is State.LEASED else 1
        if outcome == "succeed" and run.knows and run.job not in self._parents:
            move = FAST
        else:
            try:
                move = self.settle(run.job, job._replace(cost=job.cost + cost), outcome, evening=world.evening)
            except StateConflict:
                return world, "late"
        told = {
            "saves": outcome == "yield",
            "failed": outcome in ("fail", "fail for good"),
            "crashed": outcome == "lose" and job.state is not State.CANCELLING,
        }
        return self.write(world, run.job, move, cost=cost, **told), "accepted"

    def write(self, world: World, number: int, move: Move, **more: Any) -> World:
        """The world after a move, and after what its end means for those that wait for it; `more` as for `moved`."""
        after = world.put(number, moved(world.jobs[number], move, **more))
        return self._follow(after, number, move.target) if move.target in TERMINAL else after

    def _follow(self, world: World, number: int, end: State) -> World:
        for child, contract in enumerate(self.contracts):
            if contract.parent == number:
                broken = () if end in FULFILLED else (contract.policy,)
                move = self.inputs(child, world.jobs[child], *broken)
                world = world if move is None else self.write(world, child, move)
        return world

    def _position(self, number: int, job: Job) -> Position:
        contract = self.contracts[number]
        return Position(
            state=job.state,
            failures=job.failures,
            losses=job.losses,
            waited_seconds=job.waited_seconds,
            cost=job.cost,
            attempts=contract.attempts,
            crash_limit=contract.crash_limit,
            delay_limit_seconds=contract.delay_limit_seconds,
            cost_limit=contract.cost_limit,
            start_by=None,
            finish_by=EVENING - timedelta(hours=1) if contract.until_evening else None,
            backoff=Constant(contract.wait_seconds),
            has_checkpoint=job.has_checkpoint,
            runs=job.epoch,
        )

    def _once(self, key: Hashable, decide_now: Callable[[], Decided]) -> Decided:
        if key not in self._decided:
            self._decided[key] = decide_now()
        decided: Decided = self._decided[key]
        return decided
