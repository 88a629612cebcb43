"""Promise 7: a cancel request is never lost, and ends in exactly one terminal state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import Cancelled, CancelledJob, How, cancel
from testigo.authority.claim import Claimed, Lease
from testigo.authority.expire import expire
from testigo.authority.promote import promote
from testigo.authority.renew import renew
from testigo.authority.sessions import close_session
from testigo.authority.settle import settle
from testigo.authority.start import start
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.errors import NotFound
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, Release, Succeed, Yield
from testigo.rules.states import State
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.world import Worker, World, held, settlement

LET_END = {State.SUCCEEDED, State.SUCCEEDED_DEGRADED, State.PERMANENT_FAILURE}


def asks(world: World, *jobs: JobId) -> partial[Cancelled]:
    """A cancel of these jobs."""
    return partial(world.db.run, cancel, list(jobs), action=world.action())


def test_a_job_that_is_cancelled_while_it_is_claimed_never_ran_or_knows_of_it(world: World, rounds: Rounds) -> None:
    """They race for more than a thousand jobs: each is cancelled and nobody has it, or it runs and the request is
    stored; the answer agrees with the row, and so does the holder's next beat (field case R28; spec D-20, P-16)."""
    workers = world.worker(), world.worker()
    leases: dict[Worker, list[Lease]] = {worker: [] for worker in workers}
    answers: list[CancelledJob] = []
    for _ in rounds(300):
        jobs = world.submit(*(NewJob("work", queue="q") for _ in range(4)))
        cancelled, *claims = race(world.db, asks(world, *jobs), *(partial(worker.claim, 2) for worker in workers))
        answers += cancelled.jobs
        for worker, claimed in zip(workers, claims, strict=True):
            leases[worker] += claimed.leases
    taken = {lease.job_id for own in leases.values() for lease in own}
    rows = {str(row.id): row for row in world.query("SELECT id, state, epoch FROM testigo.job")}
    for job, how, state in answers:
        ran, never_ran = (How.REQUESTED, "cancelling", 1), (How.CANCELLED, "cancelled", 0)
        assert (how, state, rows[job].epoch) == (ran if job in taken else never_ran)
        assert rows[job].state == state
    for worker, own in leases.items():
        told = world.db.run(renew, worker.id, list(map(held, own)), epoch=1, beat=1, low_water=0)
        assert sorted(told.cancelling) == sorted(map(held, own))


OUTCOMES: dict[str, tuple[Outcome, str]] = {
    "succeeded": (Succeed(), "succeeded"),
    "degraded": (Degrade(encode(1), ("half",)), "succeeded_degraded"),
    "failed for good": (Fail("E", "never", permanent=True), "permanent_failure"),
    "failed": (Fail("E", "again"), "cancelled"),
    "blocked": (Block("approval"), "cancelled"),
    "yielded": (Yield(encode(1)), "cancelled"),
    "released": (Release(), "cancelled"),
}
"""Each way to end a run, and the state that it comes to where a cancel was requested before."""


@pytest.mark.parametrize("way", OUTCOMES)
def test_a_run_that_ends_while_its_job_is_cancelled_ends_the_job_once(world: World, way: str, rounds: Rounds) -> None:
    """Whichever is first, no wish to go on survives the cancel, and what ended keeps its end (field case R32;
    spec A-06, D-20)."""
    outcome, end = OUTCOMES[way]
    worker = world.worker()
    for _ in rounds(20):
        jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
        leases = worker.claim(2).leases
        (cancelled, settled) = race(
            world.db, asks(world, *jobs), partial(worker.settle, *((lease, outcome) for lease in leases))
        )
        assert settled
        for job, how, state in cancelled.jobs:
            row = world.job(job)
            assert row.state == (state if how is not How.REQUESTED else end)
            assert State(row.state) in LET_END | {State.CANCELLED}
            assert row.lease_id is None
            assert world.events(job).count("job.cancelled") == (row.state == "cancelled")


@pytest.mark.parametrize("way", OUTCOMES)
def test_the_answer_of_a_holder_that_was_asked_to_stop_decides_the_end(world: World, way: str) -> None:
    """Success and final failure are kept; any wish to go on becomes cancelled, without a retry (field case R32)."""
    outcome, end = OUTCOMES[way]
    (job,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    assert asks(world, job)().jobs == ((job, How.REQUESTED, State.CANCELLING),)
    worker.settle((lease, outcome))
    assert world.state(job) == end
    assert world.worker().claim(1).leases == ()


def test_a_cancelled_run_whose_holder_dies_is_cancelled_and_counts_as_no_loss(world: World, rounds: Rounds) -> None:
    """A cancel and the expiry of its job race: whichever is first, the job never runs again (spec P-24)."""
    for at in rounds(60):
        jobs = world.submit(*(NewJob("work", queue=f"q-{at}") for _ in range(3)))
        worker = world.worker(queues=[f"q-{at}"])
        worker.claim(3)
        world.db.run(close_session, worker.id)
        cancelled, _ = race(world.db, asks(world, *jobs), partial(world.db.run, expire))
        while world.db.run(expire).more:
            pass
        for job, how, _ in cancelled.jobs:
            row = world.job(job)
            assert (row.state, row.losses) == ("cancelled", 0 if how is How.REQUESTED else 1)


def test_many_who_cancel_the_same_jobs_change_them_once(world: World, rounds: Rounds) -> None:
    """Of any number of cancels in any order of their jobs, one takes effect and the rest are told so
    (spec B-04, D-20, P-08)."""
    for _ in rounds(60):
        waiting = world.submit(*(NewJob("work", queue="other") for _ in range(3)))
        asked = [waiting, waiting[::-1], waiting[1:]]
        answers = race(world.db, *(asks(world, *jobs) for jobs in asked))
        hows = [row.how for answer in answers for row in answer.jobs]
        assert (hows.count(How.CANCELLED), hows.count(How.ENDED)) == (3, 5)
        assert {world.job(job).revision for job in waiting} == {2}


def unadmitted(world: World) -> JobId:
    """A job that no stream has told of."""
    job = NewJob("work", queue="q")
    world.db.run(submit_within, [job], action=world.action())
    return job.id


def waiting_for_a_parent(world: World) -> JobId:
    """A job that waits for another."""
    (job,) = world.submit(NewJob("work", queue="q", parents=tuple(world.submit(queue="parents"))))
    world.db.run(admit)
    return job


def waiting_for_its_time(world: World) -> JobId:
    """A job that failed and is due again."""
    (job,) = world.submit(queue="failing")
    worker = world.worker(queues=["failing"])
    worker.settle((worker.take(), Fail("E", "again", wait_seconds=1e-6)))
    return job


def checkpointed(world: World) -> JobId:
    """A job that yielded."""
    return left_by(world, Yield(encode(1)))


def blocked(world: World) -> JobId:
    """A job that waits for somebody."""
    return left_by(world, Block("approval"))


def leased(world: World) -> JobId:
    """A job that was claimed and not started."""
    (job,) = world.submit(queue="leased")
    world.worker(queues=["leased"]).claim(1, starts=False)
    return job


def left_by(world: World, outcome: Outcome) -> JobId:
    """A job whose run ended so."""
    (job,) = world.submit(queue="left")
    worker = world.worker(queues=["left"])
    worker.settle((worker.take(), outcome))
    return job


@pytest.mark.parametrize(
    "make", [unadmitted, waiting_for_a_parent, waiting_for_its_time, checkpointed, blocked, leased]
)
def test_a_cancel_reaches_a_job_wherever_it_stands_and_whatever_moves_it(
    world: World, make: Callable[[World], JobId], rounds: Rounds
) -> None:
    """A cancel that races with all that could move the job ends in one terminal state (spec D-20, P-11, P-13)."""
    for _ in rounds(20):
        job = make(world)
        worker = world.worker(queues=["q", "failing", "left"])
        cancelled, claimed, *_ = race(
            world.db,
            asks(world, job),
            partial(worker.claim, 1),
            partial(world.db.run, admit),
            partial(world.db.run, promote, "failing"),
        )
        finish(worker, claimed)
        (row,) = cancelled.jobs
        if make is leased:
            assert (row.how, world.state(job)) == (How.REQUESTED, "cancelling")
        else:
            assert world.state(job) == "cancelled"
            assert world.events(job)[-1] == "job.cancelled"


def test_a_start_that_meets_a_cancel_does_not_start_what_it_is_told_to_stop(world: World, rounds: Rounds) -> None:
    """A leased job starts before it is asked to stop, or is named as one that must not start (spec A-05, D-20)."""
    worker = world.worker()
    for _ in rounds(50):
        (job,) = world.submit()
        (lease,) = worker.claim(1, starts=False).leases
        started, cancelled = race(
            world.db,
            partial(world.db.run, start, [held(lease)], action=worker.action()),
            asks(world, job),
        )
        assert cancelled.jobs == ((job, How.REQUESTED, State.CANCELLING),)
        assert (*started.running, *started.cancelling) == (job,)
        worker.settle((lease, Release()))
        assert world.state(job) == "cancelled"


def test_a_cancel_that_meets_a_settle_under_way_is_told_how_it_ended(world: World) -> None:
    """A cancel that waits for the job's row reads what the settle left there (spec P-07)."""
    (job,) = world.submit()
    worker = world.worker()
    end = partial(settle, settlements=[settlement(worker.take(), Succeed())], action=worker.action())
    _, cancelled = in_line(world.db, end, asks(world, job))
    assert cancelled.jobs == ((job, How.ENDED, State.SUCCEEDED),)


def test_a_cancel_of_which_one_job_does_not_exist_cancels_none(world: World) -> None:
    """All or nothing: who names a job that is not there is refused, and the others go on (spec D-20)."""
    (job,) = world.submit()
    with pytest.raises(NotFound):
        asks(world, job, NewJob("work").id)()
    assert world.state(job) == "ready"


def finish(worker: Worker, claimed: Claimed) -> None:
    """Give back what a claim of the race took."""
    if claimed.leases:
        worker.settle(*((lease, Release()) for lease in claimed.leases))
