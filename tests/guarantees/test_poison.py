"""Promise 6: a job that cannot go on stops at its limits, and stops nobody else (field case R50)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.expire import expire, take_back
from testigo.authority.jobs import lock
from testigo.authority.promote import promote
from testigo.authority.retire import retire
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.rules.outcomes import Fail
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.world import World

GOOD = 100

Sweep = Callable[[], Any]


def failed_too_often(world: World, job: JobId) -> str:
    """Its failures have reached its attempts."""
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "again", wait_seconds=0.0)))
    world.query("UPDATE testigo.job SET attempts = 1 WHERE id = CAST(:id AS uuid)", id=job)
    return "attempts"


def crashed_too_often(world: World, job: JobId) -> str:
    """Its losses have reached its crash limit."""
    lose(world)
    world.query("UPDATE testigo.job SET crash_limit = 1 WHERE id = CAST(:id AS uuid)", id=job)
    return "crashes"


def too_late_to_start(world: World, job: JobId) -> str:
    """Its latest start has passed."""
    return set_date(world, job, "start_by")


def too_late_to_finish(world: World, job: JobId) -> str:
    """The end of all its tries has passed."""
    return set_date(world, job, "finish_by")


Ruin = Callable[[World, JobId], str]

ODD: list[Ruin] = [failed_too_often, crashed_too_often, too_late_to_start, too_late_to_finish]


@pytest.mark.parametrize("slots", [1, 7])
@pytest.mark.parametrize("ruin", ODD)
def test_the_hundred_beside_an_odd_job_run_and_it_ends(world: World, ruin: Ruin, slots: int) -> None:
    """An odd job stands before a hundred good ones: however few a claim takes, and however many workers meet it at
    once, the hundred run and it ends, once and without a run (field case R50; spec P-24)."""
    (odd,) = world.submit(priority=-1)
    reason = ruin(world, odd)
    runs = world.job(odd).epoch
    good = world.submit(*(NewJob("work", queue="q") for _ in range(GOOD)))
    workers = [world.worker() for _ in range(3)]

    def work(worker_at: int) -> None:
        worker = workers[worker_at]
        while (claimed := worker.claim(slots)).leases or claimed.unfit:
            if claimed.leases:
                worker.succeed(*claimed.leases)
            if claimed.unfit:
                world.db.run(retire, claimed.unfit)

    race(world.db, *(partial(work, at) for at in range(len(workers))))
    assert Counter(world.state(job) for job in good) == {"succeeded": GOOD}
    row = world.job(odd)
    assert (row.state, row.reason, row.epoch) == ("permanent_failure", reason, runs + 1)
    assert world.events(odd).count("job.failed") == (2 if ruin is failed_too_often else 1)


def test_an_odd_job_that_others_wait_for_ends_them_as_they_say(world: World) -> None:
    """The system's end of a job is an end like any other to its children (spec P-24, P-25)."""
    (odd,) = world.submit()
    (child,) = world.submit(NewJob("work", queue="children", parents=(odd,)))
    world.db.run(admit)
    set_date(world, odd, "start_by")
    claimed = world.worker().claim(1)
    assert claimed.unfit == (odd,)
    assert world.db.run(retire, claimed.unfit) == 1
    assert (world.state(odd), world.state(child)) == ("permanent_failure", "permanent_failure")


@pytest.mark.parametrize("crash_limit", [1, 3])
def test_a_job_that_kills_its_worker_stops_at_its_crash_limit(world: World, crash_limit: int) -> None:
    """A poison job is lost with every session that takes it, and no more often than its contract allows; failures are
    not counted, and what it shared its workers with runs on (Promise 6; spec model.md, P-18)."""
    (poison,) = world.submit(crash_limit=crash_limit, priority=-1)
    good = world.submit(*(NewJob("work", queue="q") for _ in range(5)))
    for losses in range(1, crash_limit + 1):
        assert world.state(poison) == "ready"
        lose(world)
        assert world.job(poison).losses == losses
    row = world.job(poison)
    assert (row.state, row.reason, row.failures) == ("permanent_failure", "crashes", 0)
    assert world.events(poison)[1:] == ["job.lost"] * (crash_limit - 1) + ["job.failed"]
    worker = world.worker()
    worker.succeed(*worker.claim(10).leases)
    assert {world.state(job) for job in good} == {"succeeded"}


def test_of_many_who_retire_a_job_at_once_one_ends_it(world: World, rounds: Rounds) -> None:
    """Every worker that meets an odd job retires it, and it ends once; one that takes it meanwhile has no part in
    that, and whoever met it while it was locked meets it again (spec P-08, P-24)."""
    for _ in rounds(100):
        odd, other = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q"))
        set_date(world, odd, "start_by")
        worker = world.worker()
        *retired, claimed = race(world.db, *[partial(world.db.run, retire, [odd, other])] * 2, partial(worker.claim, 2))
        retired.append(world.db.run(retire, [odd]))
        assert sorted(retired) == [0, 0, 1]
        assert world.state(odd) == "permanent_failure"
        worker.succeed(*(claimed.leases or worker.claim(1).leases))
        assert world.state(other) == "succeeded"


def is_lost(world: World) -> tuple[list[JobId], Sweep]:
    """Two jobs of two sessions that are over."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    for _ in jobs:
        worker = world.worker()
        worker.take()
        world.db.run(close_session, worker.id)
    return jobs, partial(world.db.run, expire)


def is_unlisted(world: World) -> tuple[list[JobId], Sweep]:
    """Two jobs that their session does not know of."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    worker = world.worker()
    worker.claim(2)
    return jobs, partial(world.db.run, take_back, worker.id, watermark=worker.n, listed=[])


def is_due(world: World) -> tuple[list[JobId], Sweep]:
    """Two jobs whose time has come."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    worker = world.worker()
    worker.settle(*((lease, Fail("E", "again", wait_seconds=1e-6)) for lease in worker.claim(2).leases))
    return jobs, partial(world.db.run, promote, "q")


def is_ready(world: World) -> tuple[list[JobId], Sweep]:
    """Two jobs that may be claimed."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    return jobs, partial(world.worker().claim, 2)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("prepare", [is_lost, is_unlisted, is_due, is_ready])
def test_a_job_that_somebody_holds_is_passed_over_and_the_others_go_on(
    world: World, prepare: Callable[[World], tuple[list[JobId], Sweep]], which: int
) -> None:
    """However long a transaction sits on one job, no claim and no sweep waits for it: it is taken next time
    (spec D-03, P-08, P-18)."""
    jobs, sweep = prepare(world)
    before = world.state(jobs[0])

    def others_went_on(_: Connection) -> None:
        while_held = [world.state(job) for job in jobs]
        assert (while_held[which], while_held[1 - which] == before) == (before, False)

    in_line(world.db, lambda c: lock(c, [jobs[which]]), sweep, then=others_went_on)
    sweep()
    assert before not in {world.state(job) for job in jobs}


def lose(world: World) -> None:
    """A worker takes one job and dies."""
    worker = world.worker()
    worker.take()
    world.db.run(close_session, worker.id)
    world.db.run(expire)


def set_date(world: World, job: JobId, date: str) -> str:
    """Let a date of the job be past."""
    world.query(f"UPDATE testigo.job SET {date} = now() - interval '1 second' WHERE id = CAST(:id AS uuid)", id=job)
    return date
