"""Everything that may happen next in a small world; nothing here chooses, and who explores takes every step.

Workers claim, start, save and report; answers are lost and reports sent again; a process dies, or stands still
until its session is declared dead, and goes on as if nothing had been; jobs are cancelled, unblocked, promoted,
taken back and retired at any moment; and evening comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from testigo.rules.states import CLAIMABLE, LEASED, TERMINAL, WAITING, State
from tests.simulation.authority import Authority
from tests.simulation.small_world import SESSIONS, WORKERS, Job, Report, Run, Worker, World

__all__ = ["Step", "steps"]


class Step(NamedTuple):
    """One event, told in words and numbers of jobs, and the world after it.

    `run` is whose report it was, `answer` what that was told, and `first_answer` what it had been told before.
    """

    what: tuple[object, ...]
    after: World
    run: Run | None = None
    answer: str | None = None
    first_answer: str | None = None


LOST = "but the answer is lost"


def steps(authority: Authority, world: World, *, grants_max: int) -> Iterator[Step]:
    """Every event that may come next, as long as no job is granted more often than this.

    While nothing tells the workers apart, what the second does is what the first does under another name.
    """
    alike = world.workers == WORKERS and world.open == SESSIONS and not any(job.lease for job in world.jobs)
    for at, worker in enumerate(world.workers[: 1 if alike else None]):
        if worker.session in world.open:
            yield from _claims(authority, world, at, grants_max)
            yield from _takes_back(authority, world, worker)
        for run in worker.runs:
            yield from _works(authority, world, at, run)
            yield from _reports(authority, world, at, run)
        for report in worker.unanswered:
            yield _resends(authority, world, at, report)
        yield from _misfortunes(world, at)
    for session in world.open - {worker.session for worker in world.workers}:
        yield Step((session, "is declared dead after its crash"), world._replace(open=world.open - {session}))
    for number, job in enumerate(world.jobs):
        yield from _control(authority, world, number, job)
    if not world.evening and any(contract.until_evening for contract in authority.contracts):
        yield Step(("evening comes",), world._replace(evening=True))


def _claims(authority: Authority, world: World, at: int, grants_max: int) -> Iterator[Step]:
    session = world.workers[at].session
    for number, job in enumerate(world.jobs):
        if job.state not in CLAIMABLE or job.epoch >= grants_max:
            continue
        if authority.is_unfit(number, job, evening=world.evening) is not None:
            continue
        for starts in (True,) if job.state is State.CHECKPOINTED else (True, False):
            state = State.RUNNING if starts else State.LEASED
            after = world.put(number, job._replace(state=state, epoch=job.epoch + 1, lease=session))
            run = Run(number, job.epoch + 1, session, starts, knows=True)
            what = (session, "claims", number, "and starts it" if starts else "and does not start it")
            yield Step(what, after.tell(at, None, run))
            if world.lost_answers:
                yield Step((*what, LOST), _with_loss(after))


def _takes_back(authority: Authority, world: World, worker: Worker) -> Iterator[Step]:
    listed = {run.job for run in worker.runs} | {report.run.job for report in worker.unanswered}
    for number, job in enumerate(world.jobs):
        if job.lease == worker.session and number not in listed:
            move = authority.settle(number, job, "release", evening=world.evening)
            yield Step((worker.session, "does not list", number), authority.write(world, number, move))


def _works(authority: Authority, world: World, at: int, run: Run) -> Iterator[Step]:
    if not authority.rules.holds(world, run):
        return
    job = world.jobs[run.job]
    if job.state is State.LEASED:
        after = authority.write(world, run.job, authority.start(run.job, job))
        yield Step((run.lease, "starts", run.job), after.tell(at, run, run._replace(started=True, knows=True)))
    if run.started and not job.has_checkpoint:
        after = world.put(run.job, job._replace(has_checkpoint=True))
        yield Step((run.lease, "saves", run.job), after.tell(at, run, run._replace(knows=True)))
        if world.lost_answers:
            yield Step((run.lease, "saves", run.job, LOST), _with_loss(after))


def _reports(authority: Authority, world: World, at: int, run: Run) -> Iterator[Step]:
    for outcome in authority.contracts[run.job].outcomes:
        after, answer = authority.report(world, run, outcome)
        after = after.tell(at, run, None)
        what = (run.lease, "reports", run.job, f"of epoch {run.epoch} as", outcome, "which is", answer)
        yield Step(what, after, run, answer)
        if world.lost_answers:
            worker = after.workers[at]
            waits = worker._replace(unanswered=(*worker.unanswered, Report(run, outcome, answer)))
            yield Step((*what, LOST), _with_loss(after).put_worker(at, waits), run, answer)


def _resends(authority: Authority, world: World, at: int, report: Report) -> Step:
    worker, run = world.workers[at], report.run
    after, answer = world, report.answer
    if not authority.rules.keeps_receipts:
        after, answer = authority.report(world, run, report.outcome)
    told = worker._replace(unanswered=tuple(other for other in worker.unanswered if other is not report))
    what = (run.lease, "reports", run.job, f"of epoch {run.epoch} again, which is", answer)
    return Step(what, after.put_worker(at, told), None, answer, report.answer)


def _misfortunes(world: World, at: int) -> Iterator[Step]:
    worker = world.workers[at]
    again = worker.session + "'"
    if world.crashes:
        reborn = world._replace(crashes=world.crashes - 1, open=world.open | {again})
        yield Step((worker.session, "crashes and comes back"), reborn.put_worker(at, Worker(again)))
    if worker.session not in world.open:
        reopened = world._replace(open=world.open | {again})
        yield Step((worker.session, "opens a new session"), reopened.put_worker(at, worker._replace(session=again)))
    elif world.pauses:
        dead = world._replace(pauses=world.pauses - 1, open=world.open - {worker.session})
        yield Step((worker.session, "stands still and is declared dead"), dead)


def _control(authority: Authority, world: World, number: int, job: Job) -> Iterator[Step]:
    if job.state in LEASED and job.lease not in world.open:
        move = authority.expire(number, job, evening=world.evening)
        after = authority.write(world, number, move, crashed=job.state is State.RUNNING)
        yield Step((number, "is taken back from", job.lease), after)
    if job.state not in TERMINAL and job.state is not State.CANCELLING:
        move = authority.cancel(number, job)
        yield Step((number, "is cancelled"), authority.write(world, number, move, cancelled=True))
    if job.state in (State.CREATED, State.RETRY_WAITING):
        move = authority.promote(number, job)
        yield Step((number, "is promoted"), authority.write(world, number, move))
    if job.state is State.BLOCKED_BY_QUALITY:
        yield Step((number, "is unblocked"), authority.write(world, number, authority.unblock(number, job)))
    elif job.state in WAITING:
        reason = authority.is_unfit(number, job, evening=world.evening)
        if reason is not None:
            move = authority.retire(number, job, reason)
            yield Step((number, "is retired for its", reason), authority.write(world, number, move))


def _with_loss(world: World) -> World:
    return world._replace(lost_answers=world.lost_answers - 1)
