"""A job that is submitted inside a caller's own transaction exists if and only if that commits (spec P-11)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.admit import admit, waits_for_admission
from testigo.authority.cancel import cancel
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.errors import NotFound
from testigo.store.connections import run_within
from testigo.store.wake import channel
from tests.guarantees.conftest import Rounds
from tests.races import race
from tests.world import World


@pytest.fixture
def caller(database_url: str) -> Iterator[psycopg.Connection]:
    """An application's own connection, with a table of its own."""
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE orders (id text PRIMARY KEY)")
        connection.commit()
        yield connection


@pytest.fixture
def wakes(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection that hears every wake-up."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f'LISTEN "{channel("testigo")}"')
        yield connection


def place_order(caller: psycopg.Connection, *jobs: NewJob, action: Action | None = None) -> list[JobId]:
    """What an application does: a row of its own, and the work that belongs to it."""
    caller.execute("INSERT INTO orders VALUES (%s)", (new_id(),))
    receipt = run_within(caller, submit_within, jobs, action=action or Action("shop"))
    return [row.job_id for row in receipt.jobs]


def test_until_the_caller_commits_nobody_sees_the_job(world: World, caller: psycopg.Connection) -> None:
    """Neither claim, admission nor cancel finds what is not committed (field case R97; spec P-11)."""
    (job,) = place_order(caller, NewJob("work", queue="q"))
    assert not world.db.run(waits_for_admission)
    assert world.db.run(admit).admitted == 0
    assert world.worker().claim(1).leases == ()
    with pytest.raises(NotFound):
        world.db.run(cancel, [job], action=world.action())
    caller.commit()
    assert world.db.run(waits_for_admission)
    assert world.worker().claim(1).leases == ()
    assert world.db.run(admit) == (1, ("q",))
    assert world.worker().take().job_id == job


def test_a_rollback_leaves_nothing_and_wakes_nobody(
    world: World, caller: psycopg.Connection, wakes: psycopg.Connection
) -> None:
    """No job, key, receipt, event or wake-up is left of what the caller took back (field case R97; spec P-11)."""
    place_order(caller, NewJob("work", queue="q", key="order-17", parents=tuple(world.submit(queue="parents"))))
    caller.rollback()
    (left,) = world.query(
        """
        SELECT (SELECT count(*) FROM testigo.job) AS jobs, (SELECT count(*) FROM testigo.submission) AS keys,
               (SELECT count(*) FROM testigo.receipt WHERE actor = 'shop') AS receipts,
               (SELECT count(*) FROM testigo.admission) AS admissions, (SELECT count(*) FROM testigo.event) AS events
        """
    )
    assert left == (1, 0, 0, 0, 1)
    assert heard_before_the_last(world, wakes) == {"parents"}


def test_a_commit_tells_no_stream_and_wakes_nobody_before_the_admission(
    world: World, caller: psycopg.Connection, wakes: psycopg.Connection
) -> None:
    """The admission tells what the submission did: its event has the submission's actor and action, and its own time
    in the queue (spec P-11)."""
    action = Action("shop")
    (job,) = place_order(caller, NewJob("work", queue="q"), action=action)
    caller.commit()
    assert world.query("SELECT * FROM testigo.stream") == []
    world.submit(queue="first")
    world.db.run(admit)
    assert heard_before_the_last(world, wakes) == {"first", "q"}
    (event,) = world.query("SELECT * FROM testigo.event WHERE subject = CAST(:id AS uuid)", id=job)
    assert (event.type, event.actor, event.action) == ("job.requested", "shop", action.id)
    assert world.job(job).ready_at > world.job(job).created_at


def test_a_callers_transaction_makes_nobody_wait(world: World, caller: psycopg.Connection) -> None:
    """While it is open, the same stream is told of other work and the job's parent is settled: it holds no lock
    that anybody needs (spec P-10, P-11)."""
    (parent,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    (child,) = place_order(caller, NewJob("work", queue="q", parents=(parent,)))
    world.submit()
    worker.succeed(lease)
    assert world.state(parent) == "succeeded"
    caller.commit()
    world.db.run(admit)
    assert world.state(child) == "ready"


def test_a_command_that_meets_a_job_before_its_admission_admits_it(world: World, caller: psycopg.Connection) -> None:
    """Its stream tells of it first, as the submission's deed, and then of the cancel (spec P-11)."""
    action = Action("shop")
    (job,) = place_order(caller, NewJob("work", queue="q"), action=action)
    caller.commit()
    world.db.run(cancel, [job], action=world.action())
    rows = world.query("SELECT type, actor FROM testigo.event ORDER BY sequence")
    assert rows == [("job.requested", "shop"), ("job.cancelled", "tester")]


def test_of_all_that_callers_submit_exactly_what_they_commit_runs_and_once(
    world: World, database_url: str, rounds: Rounds
) -> None:
    """Applications commit and roll back at their whim while workers admit and claim (field case R97; spec P-11)."""
    whims = [random.random() < 0.5 for _ in rounds(300)]
    at_work = ["left", "right"]

    def apply(whims: list[bool]) -> list[JobId]:
        committed: list[JobId] = []
        with psycopg.connect(database_url) as connection:
            for commits in whims:
                jobs = [NewJob("work", queue="q", key=new_id()) for _ in range(2)]
                run_within(connection, submit_within, jobs, action=Action("shop"))
                if commits:
                    connection.commit()
                    committed += [job.id for job in jobs]
                else:
                    connection.rollback()
        at_work.pop()
        return committed

    def work() -> list[JobId]:
        worker = world.worker()
        done: list[JobId] = []
        last = False
        while not last:
            last = not at_work
            world.db.run(admit)
            while leases := worker.claim(5).leases:
                worker.succeed(*leases)
                done += [lease.job_id for lease in leases]
        return done

    left, right, *done = race(world.db, partial(apply, whims[::2]), partial(apply, whims[1::2]), work, work)
    assert sorted(itertools.chain(*done)) == sorted(left + right)


def heard_before_the_last(world: World, wakes: psycopg.Connection) -> set[str]:
    """The streams for which a wake-up was sent until now: everything that comes before one that is asked for here."""
    world.submit(queue="the last")
    heard: set[str] = set()
    for wake in wakes.notifies(timeout=60):
        if wake.payload == "the last":
            return heard
        heard.add(wake.payload)
    raise AssertionError("the wake-up that was asked for did not come")
