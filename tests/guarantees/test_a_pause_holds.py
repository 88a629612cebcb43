"""No claim that begins after a pause was answered takes what is paused; submissions and runs go on (spec P-14)."""

from __future__ import annotations

from functools import partial

import pytest

from testigo.authority.claim import Claimed, Lease, QueueClaim, claim
from testigo.authority.pause import Scope, pause, resume
from testigo.authority.submissions import NewJob
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.world import Worker, World

NAMES = {Scope.QUEUE: "q", Scope.KIND: "work"}


@pytest.mark.parametrize("scope", list(Scope))
def test_no_claim_that_begins_after_the_answer_of_a_pause_takes_anything(
    world: World, scope: Scope, rounds: Rounds
) -> None:
    """Workers claim while it is paused: what they took they began to take before the answer (spec P-14)."""
    workers = [world.worker() for _ in range(2)]
    name = NAMES[scope]
    ready = 0
    for _ in rounds(150):
        ready += len(world.submit(*(NewJob("work", queue="q") for _ in range(4))))
        switch = partial(world.db.run, pause, scope, name, action=world.action())
        paused, *claims = race(world.db, switch, *(partial(worker.claim, 1) for worker in workers))
        assert paused.changed
        ready -= sum(len(claimed.leases) for claimed in claims)
        assert [worker.claim(5) for worker in workers] == [Claimed((), {})] * 2
        assert ready > 0
        world.db.run(resume, scope, name, action=world.action())


def test_a_claim_does_not_wait_for_a_pause_that_is_not_answered_yet(world: World) -> None:
    """Until a pause is committed, claims go on: none waits for it (spec P-14)."""
    (job,) = world.submit()
    worker = world.worker()
    set_pause = partial(pause, scope=Scope.QUEUE, name="q", action=world.action())
    paused, claimed = in_line(world.db, set_pause, partial(worker.claim, 1))
    assert paused.changed
    assert [lease.job_id for lease in claimed.leases] == [job]


def test_a_claim_that_began_before_a_pause_may_take_and_its_job_runs_on(world: World) -> None:
    """What is owned when the pause is answered is not touched by it (spec P-14)."""
    (job,) = world.submit()
    worker = world.worker()
    take = partial(claim, queues=[QueueClaim("q", 1)], kinds=("work",), slots=1, lease_id=job, action=worker.action())
    claimed, _ = in_line(world.db, take, partial(world.db.run, pause, Scope.QUEUE, "q", action=world.action()))
    worker.succeed(*claimed.leases)
    assert world.state(job) == "succeeded"


def test_what_is_not_paused_is_claimed_past_what_is(world: World) -> None:
    """A paused kind holds back only itself, and a paused queue only itself (spec P-14)."""
    other_kind = NewJob("other", queue="q", priority=1)
    other_queue = NewJob("work", queue="p")
    world.submit(NewJob("work", queue="q"), other_kind, other_queue)
    worker = world.worker(queues=["q", "p"], kinds=["work", "other"])
    world.db.run(pause, Scope.KIND, "work", action=world.action())
    assert taken(worker) == [other_kind.id]
    world.db.run(resume, Scope.KIND, "work", action=world.action())
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    assert taken(worker) == [other_queue.id]


def test_of_those_who_pause_and_resume_at_once_each_is_told_whether_it_changed_anything(
    world: World, rounds: Rounds
) -> None:
    """One of several who pause is the one who did, and nothing is paused twice (spec B-04, P-14)."""
    for _ in rounds(100):
        for command in (pause, resume):
            switches = [partial(world.db.run, command, Scope.QUEUE, "q", action=world.action()) for _ in range(3)]
            assert sorted(answer.changed for answer in race(world.db, *switches)) == [False, False, True]
    assert world.query("SELECT * FROM testigo.pause") == []


def taken(worker: Worker) -> list[str]:
    """The jobs that the worker claims."""
    leases: tuple[Lease, ...] = worker.claim(5).leases
    return [lease.job_id for lease in leases]
