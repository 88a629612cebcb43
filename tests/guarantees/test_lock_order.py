"""Commands over many streams, jobs and families at once do not wait for each other in a circle (spec P-08, P-09)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.claim import Lease
from testigo.authority.deferred import settle_deferred
from testigo.authority.jobs import lock
from testigo.authority.pause import configure_queue
from testigo.authority.settle import settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.rules.outcomes import Fail, Succeed
from testigo.settings import STORE
from testigo.store.sql import Statement
from tests.guarantees.conftest import Rounds
from tests.guarantees.somebody import Somebody
from tests.races import DEADLINE_SECONDS, deadlocks, in_line, race
from tests.world import Worker, World, settlement

Move = Callable[[], Any]


def live_together(world: World, rounds: Rounds, *, families: bool, entangled: bool) -> None:
    """Have several people do everything at once, each so many times."""
    jobs: list[JobId] = []
    people = [Somebody(world, jobs, families=families, entangled=entangled) for _ in range(5)]

    def live(somebody: Somebody) -> None:
        for _ in rounds(80):
            somebody.move()

    race(world.db, *(partial(live, somebody) for somebody in people))
    assert {row.type for row in world.query("SELECT DISTINCT type FROM testigo.event")} >= {
        "job.requested",
        "job.completed",
        "job.failed",
        "job.cancelled",
    }


@pytest.mark.parametrize("families", [False, True], ids=["streams", "families"])
def test_commands_over_many_streams_at_once_meet_no_deadlock(world: World, families: bool, rounds: Rounds) -> None:
    """Batches take streams, jobs, keys and children in every order that chance makes, and the server never has to
    end one of them (spec P-08, P-09)."""
    live_together(world, rounds, families=families, entangled=False)
    assert deadlocks(world.db) == 0


def test_families_that_end_in_one_another_come_to_one_consistent_end(world: World, rounds: Rounds) -> None:
    """Failures run down chains that share links while sessions die and others cancel across them. Commands that meet
    in a circle there are sent again: nobody sees more of it, and every invariant holds (spec P-01, P-25)."""
    live_together(world, rounds, families=True, entangled=True)


def submits(world: World) -> Move:
    """A batch for both streams."""
    batch = [NewJob("work", queue="b"), NewJob("work", queue="a")]
    return partial(world.db.run, submit_many, batch, action=world.action())


def settles(world: World) -> Move:
    """Two runs that succeeded."""
    worker, leases = two_runs(world)
    return partial(world.db.run, settle, [settlement(lease, Succeed()) for lease in leases], action=worker.action())


def settles_deferred(world: World) -> Move:
    """Two runs that failed."""
    worker, leases = two_runs(world)
    ends = [(at, settlement(lease, Fail("E", "no"))) for at, lease in enumerate(leases)]
    return partial(world.db.run, settle_deferred, ends, action=worker.action())


def two_runs(world: World) -> tuple[Worker, tuple[Lease, ...]]:
    """A worker that runs a job of each stream."""
    worker = world.worker(queues=["b", "a"])
    world.submit(NewJob("work", queue="b"), NewJob("work", queue="a"))
    return worker, worker.claim(2).leases


def cancels(world: World) -> Move:
    """Two jobs that wait."""
    jobs = world.submit(NewJob("work", queue="b"), NewJob("work", queue="a"))
    return partial(world.db.run, cancel, jobs, action=world.action())


def claims(world: World) -> Move:
    """Two jobs of queues whose every step is told."""
    for queue in ("a", "b"):
        world.db.run(configure_queue, queue, events="full", action=world.action())
    world.submit(NewJob("work", queue="b"), NewJob("work", queue="a"))
    return partial(world.worker(queues=["b", "a"]).claim, 2)


@pytest.mark.parametrize("prepare", [submits, settles, settles_deferred, cancels, claims])
def test_whoever_tells_several_streams_takes_their_heads_in_the_order_of_their_names(
    world: World, prepare: Callable[[World], Move]
) -> None:
    """While somebody holds the first head, no command holds a later one and waits (spec P-08)."""
    move = prepare(world)
    in_line(world.db, lambda c: _HEAD.rows(c, name="a"), move, then=lambda c: _HEAD.rows(c, name="b"))
    assert deadlocks(world.db) == 0


_HEAD = Statement("SELECT head FROM testigo.stream WHERE name = :name FOR UPDATE")


def settles_backwards(world: World, jobs: list[JobId]) -> Move:
    """A batch of successes that names the last job first."""
    worker = world.worker()
    leases = {lease.job_id: lease for lease in worker.claim(len(jobs)).leases}
    ends = [settlement(leases[job], Succeed()) for job in reversed(jobs)]
    return partial(world.db.run, settle, ends, action=worker.action())


def cancels_backwards(world: World, jobs: list[JobId]) -> Move:
    """A batch of cancels that names the last job first."""
    return partial(world.db.run, cancel, jobs[::-1], action=world.action())


@pytest.mark.parametrize("prepare", [settles_backwards, cancels_backwards])
def test_whoever_changes_several_jobs_locks_them_in_the_order_of_their_ids(
    world: World, prepare: Callable[[World, list[JobId]], Move]
) -> None:
    """While somebody holds the first job, no command holds a later one and waits (spec P-08)."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    move = prepare(world, jobs)
    in_line(world.db, lambda c: lock(c, jobs[:1]), move, then=lambda c: lock(c, jobs[1:]))
    assert deadlocks(world.db) == 0


def test_parents_that_end_are_locked_with_their_children_in_one_order(world: World) -> None:
    """A job may be a child here and a parent there: its place in the order is that of its id (spec P-08, P-25)."""
    first, between, last = sorted(new_id() for _ in range(3))
    world.submit(
        NewJob("work", queue="q", id=JobId(first)),
        NewJob("work", queue="children", id=JobId(between), parents=(JobId(first),)),
        NewJob("work", queue="q", id=JobId(last)),
    )
    world.db.run(admit)
    worker = world.worker()
    ends = [(at, settlement(lease, Succeed())) for at, lease in enumerate(worker.claim(2).leases)]
    move = partial(world.db.run, settle_deferred, ends, action=worker.action())
    in_line(world.db, lambda c: lock(c, [between]), move, then=lambda c: lock(c, [last]))
    assert deadlocks(world.db) == 0


def test_a_cancel_that_admits_holds_no_head_while_it_waits_for_a_job(world: World) -> None:
    """What a cancel admits is told with the rest, when every job is locked (spec P-09, P-11)."""
    (parent,) = world.submit()
    (other,) = world.submit()
    (unadmitted,) = world.submit(NewJob("work", queue="q", parents=(parent,)))
    wide = partial(world.db.run, cancel, [unadmitted, other], action=world.action())
    narrow = partial(cancel, ids=[other], action=world.action())
    in_line(world.db, lambda c: lock(c, [other]), wide, then=narrow)
    assert deadlocks(world.db) == 0
    assert world.events(unadmitted) == ["job.requested", "job.cancelled"]


def test_commands_that_wait_in_a_circle_are_counted_and_sent_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What these tests would see: one command is ended by the server, and takes effect all the same (spec P-01)."""
    patient = replace(STORE, lock_timeout_seconds=DEADLINE_SECONDS, idle_in_transaction_seconds=DEADLINE_SECONDS)
    monkeypatch.setattr("testigo.store.command.STORE", patient)
    one, other = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q"))
    meeting, is_over = threading.Barrier(2), threading.Event()

    def crosswise(first: JobId, second: JobId) -> list[set[JobId]]:
        tries = itertools.count(1)

        def both(c: Connection) -> list[set[JobId]]:
            is_again = next(tries) > 1
            if is_again:  # not before the other has ended, or the two might meet so again
                assert is_over.wait(DEADLINE_SECONDS)
            c.exec_driver_sql("SET LOCAL deadlock_timeout = '10ms'")
            locked = set(lock(c, [first]))
            if not is_again:
                meeting.wait(DEADLINE_SECONDS)
            return [locked, set(lock(c, [second]))]

        answer: list[set[JobId]] = world.db.run(both)
        is_over.set()
        return answer

    answers = race(world.db, lambda: crosswise(one, other), lambda: crosswise(other, one))
    assert answers == [[{one}, {other}], [{other}, {one}]]
    assert deadlocks(world.db) == 1
