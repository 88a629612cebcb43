"""A small world: what an installation is when nothing is left of it but jobs, workers and their sessions.

`authority.py` decides and writes in it, `happenings.py` says what may come next, `promises.py` what must hold,
and `exploring.py` goes everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from testigo.rules.decide import Move, Policy
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Fail, Lose, Outcome, Release, Succeed, Yield
from testigo.rules.states import State

__all__ = [
    "EVENING",
    "FULFILLED",
    "NOON",
    "OUTCOMES",
    "SESSIONS",
    "WORKERS",
    "Contract",
    "Job",
    "Report",
    "Run",
    "Worker",
    "World",
    "moved",
]

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EVENING = NOON + timedelta(hours=8)
FULFILLED = (State.SUCCEEDED, State.SUCCEEDED_DEGRADED)

OUTCOMES: dict[str, Outcome] = {
    "succeed": Succeed(),
    "fail": Fail("E", "again"),
    "fail for good": Fail("E", "never", permanent=True),
    "block": Block("approval"),
    "yield": Yield(Document("1")),
    "release": Release(),
    "lose": Lose("E", "gone"),
}


@dataclass(frozen=True)
class Contract:
    """One job: its budgets, how its runs may end, and the job that it waits for, if any. A run costs one."""

    outcomes: tuple[str, ...]
    attempts: int = 1
    crash_limit: int = 1
    wait_seconds: float = 0.0
    delay_limit_seconds: float | None = None
    cost_limit: float | None = None
    until_evening: bool = False
    parent: int | None = None
    policy: Policy = Policy.FAIL


class Job(NamedTuple):
    """A row of the job table. `lease` is the session that holds it; with the epoch it names the grant.

    The last ones are history, which no rule reads: the last epoch that has ended, how often the job failed and
    crashed, and whether a cancel was ever accepted.
    """

    state: State
    failures: int = 0
    losses: int = 0
    waited_seconds: float = 0.0
    cost: int = 0
    epoch: int = 0
    lease: str | None = None
    has_checkpoint: bool = False
    ended: int = 0
    failed: int = 0
    crashed: int = 0
    was_cancelled: bool = False


class Run(NamedTuple):
    """What a worker believes to own; nobody tells it when that is over.

    `knows` says that it has seen the job's newest revision: all that a revision is asked for.
    """

    job: int
    epoch: int
    lease: str
    started: bool
    knows: bool


class Report(NamedTuple):
    """A settle that was sent and whose answer was lost: it is in the receipt, and the worker will ask again."""

    run: Run
    outcome: str
    answer: str


class Worker(NamedTuple):
    """A worker process: its session, what it runs, and what it was not told."""

    session: str
    runs: tuple[Run, ...] = ()
    unanswered: tuple[Report, ...] = ()

    def without_knowledge(self, number: int) -> Worker:
        """The worker when a job has a revision that it has not seen."""
        return self._replace(runs=tuple(run._replace(knows=False) if run.job == number else run for run in self.runs))


WORKERS = (Worker("ann"), Worker("bob"))
SESSIONS = frozenset(worker.session for worker in WORKERS)


class World(NamedTuple):
    """Everything there is; `crashes`, `pauses` and `lost_answers` count those that may still happen."""

    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    open: frozenset[str]
    evening: bool = False
    crashes: int = 0
    pauses: int = 0
    lost_answers: int = 0

    def put(self, number: int, job: Job) -> World:
        """The world with this row in the job's place, at a revision that no run has seen."""
        jobs = (*self.jobs[:number], job, *self.jobs[number + 1 :])
        workers = self.workers
        if any(run.knows and run.job == number for worker in workers for run in worker.runs):
            workers = tuple(worker.without_knowledge(number) for worker in workers)
        return World(jobs, workers, *self[2:])

    def tell(self, at: int, old: Run | None, new: Run | None) -> World:
        """The world with `new` in place of `old` among the runs of a worker."""
        session, runs, unanswered = self.workers[at]
        others = [run for run in runs if old is None or run[:3] != old[:3]]
        runs = tuple(others if new is None else sorted([*others, new]))
        return self.put_worker(at, Worker(session, runs, unanswered))

    def put_worker(self, at: int, worker: Worker) -> World:
        """The world with this worker in its place."""
        return World(self.jobs, (*self.workers[:at], worker, *self.workers[at + 1 :]), *self[2:])


def moved(
    job: Job,
    move: Move,
    *,
    cost: int = 0,
    saves: bool = False,
    failed: bool = False,
    crashed: bool = False,
    cancelled: bool = False,
) -> Job:
    """The row after a move: what ends or waits gives up its lease, and with it the epoch is over."""
    owned = move.target in (State.RUNNING, State.CANCELLING)
    return Job(
        state=move.target,
        failures=job.failures + move.failures,
        losses=job.losses + move.losses,
        waited_seconds=job.waited_seconds + (move.wait_seconds or 0.0),
        cost=job.cost + cost,
        epoch=job.epoch + move.epochs,
        lease=job.lease if owned else None,
        has_checkpoint=job.has_checkpoint or saves,
        ended=job.ended if owned else job.epoch + move.epochs,
        failed=job.failed + failed,
        crashed=job.crashed + crashed,
        was_cancelled=job.was_cancelled or cancelled,
    )
