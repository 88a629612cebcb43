"""What must hold at every step of a small world: promises 1, 2, 3, 4, 6 and 7, read as invariants.

They look at jobs, epochs and answers from outside, and ask neither the rules nor the fence whether those were
right. Promise 1 alone plays on, by the rules: nothing more goes wrong, workers come, and the job must end.
"""

from __future__ import annotations

from collections.abc import Iterator

from testigo.rules.decide import Move, Policy
from testigo.rules.states import LEASED, TERMINAL, State
from tests.simulation.authority import Authority
from tests.simulation.happenings import Step
from tests.simulation.small_world import FULFILLED, Contract, Job, World, moved

__all__ = ["Promises"]

MOVES_MAX = 20
"""More than any job needs to its end."""


class Promises:
    """The promises, as far as one step of a world can break them."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self._ends: dict[tuple[int, Job, bool, State | None], State] = {}

    def broken(self, before: World, step: Step) -> Iterator[str]:
        """What this step breaks, each as a sentence that begins with the promise."""
        if step.answer is not None:
            yield from _answers(before, step)
        if before.jobs is step.after.jobs and before.evening is step.after.evening:
            return
        for number, (old, new) in enumerate(zip(before.jobs, step.after.jobs, strict=True)):
            if old is not new:
                yield from (f"{what} (job {number})" for what in _changes(old, new))
                contract = self.authority.contracts[number]
                yield from (f"{what} (job {number})" for what in _budgets(contract, before, old, new))
        yield from self._stuck(step.after)

    def _stuck(self, world: World) -> Iterator[str]:
        ends: list[State] = []
        for number, (job, contract) in enumerate(zip(world.jobs, self.authority.contracts, strict=True)):
            parent = None if contract.parent is None else ends[contract.parent]
            ends.append(self._end(number, job, world.evening, parent))
            waits = parent is not None and parent not in FULFILLED and contract.policy is Policy.WAIT
            if ends[-1] not in TERMINAL and not waits:
                yield f"Promise 1: job {number} is {job.state}, and neither worker nor sweep can ever end it"

    def _end(self, number: int, job: Job, evening: bool, parent: State | None) -> State:
        key = (number, job, evening, parent)
        if key not in self._ends:
            self._ends[key] = self._play(number, job, evening, parent)
        return self._ends[key]

    def _play(self, number: int, job: Job, evening: bool, parent: State | None) -> State:
        authority = self.authority
        broken = () if parent in FULFILLED else (authority.contracts[number].policy,)
        for _ in range(MOVES_MAX):
            if job.state in TERMINAL:
                break
            move: Move | None
            if job.state in LEASED:
                move = authority.expire(number, job, evening=evening)
            elif job.state in (State.CREATED, State.RETRY_WAITING):
                move = authority.promote(number, job)
            elif job.state is State.BLOCKED_BY_QUALITY:
                move = authority.unblock(number, job)
            elif job.state is State.INPUTS_PENDING:
                move = authority.inputs(number, job, *broken)
            elif (reason := authority.is_unfit(number, job, evening=evening)) is not None:
                move = authority.retire(number, job, reason)
            else:
                return State.SUCCEEDED  # a worker claims it, and all goes well
            if move is None:
                break
            job = moved(job, move)
        return job.state


def _answers(before: World, step: Step) -> Iterator[str]:
    changed = before.jobs != step.after.jobs
    if step.run is not None:
        job = before.jobs[step.run.job]
        over = step.run.epoch != job.epoch or job.epoch <= job.ended
        stale = over or step.run.lease not in before.open
        if step.answer == "accepted" and stale:
            yield "Promise 3: a stale holder's report was accepted"
        if step.answer == "late" and changed:
            yield "Promise 3: a report that came too late changed something"
        if step.answer == "late" and not stale:
            yield "Promise 1: an owner's report was refused"
    if step.first_answer is not None:
        if step.answer != step.first_answer:
            yield f"Promise 4: the answer was {step.first_answer}, and is {step.answer} when it is asked for again"
        if changed:
            yield "Promise 4: a report that was sent again changed something"


def _changes(old: Job, new: Job) -> Iterator[str]:
    if old.state in TERMINAL:
        yield f"Promise 2: what has ended moved, from {old.state} to {new.state}"
    if (new.lease is not None) != (new.state in LEASED):
        yield f"Promise 2: a job that is {new.state} has the owner {new.lease}"
    if new.epoch - old.epoch not in (0, 1) or (new.epoch > old.epoch and old.lease is not None):
        yield f"Promise 2: epoch {new.epoch} was granted while {old.lease} owned epoch {old.epoch}"
    if new.was_cancelled and new.state not in TERMINAL | {State.CANCELLING}:
        yield f"Promise 7: a cancel was accepted, and the job is {new.state}"


def _budgets(contract: Contract, before: World, old: Job, new: Job) -> Iterator[str]:
    delay, cost = contract.delay_limit_seconds, contract.cost_limit
    if (new.failures, new.losses) != (new.failed, new.crashed):
        counted = f"{new.failures} failures and {new.losses} losses are counted"
        yield f"Promise 6: it failed {new.failed} and crashed {new.crashed} times, and {counted}"
    if new.failed > contract.attempts:
        yield f"Promise 6: {new.failed} failures of {contract.attempts} attempts"
    if new.crashed > contract.crash_limit:
        yield f"Promise 6: {new.crashed} crashes beyond the limit of {contract.crash_limit}"
    if delay is not None and new.waited_seconds > delay:
        yield f"Promise 6: {new.waited_seconds} seconds of waiting beyond the limit of {delay}"
    if new.lease is not None and new.epoch > old.epoch:
        if old.failures >= contract.attempts or old.losses >= contract.crash_limit:
            yield f"Promise 6: a run begins after {old.failures} failures and {old.losses} losses"
        if cost is not None and old.cost >= cost:
            yield f"Promise 6: a run begins at a cost of {old.cost}, and its limit is {cost}"
        if contract.until_evening and before.evening:
            yield "Promise 6: a run begins after finish_by"
