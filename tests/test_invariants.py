"""The invariants hold for an installation at work, and each of them notices what breaks it."""

from __future__ import annotations

import pytest

from testigo.authority.actions import new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.rules.outcomes import Block, Fail, Outcome, Succeed
from tests.invariants import INVARIANTS, broken, check
from tests.world import World

LATER = "now() + interval '1 day'"
SABOTAGE = {
    "a stream's events are numbered": "UPDATE testigo.stream SET head = head + 1",
    "an event belongs to a stream": "UPDATE testigo.event SET at = at + interval '1 day' WHERE sequence = 1",
    "a job that is admitted was requested": "UPDATE testigo.event SET type = 'job.ready' WHERE type = 'job.requested'",
    "each event of a job has a higher revision": "UPDATE testigo.event SET revision = 1",
    "a job ends once": "UPDATE testigo.event SET type = 'job.blocked' WHERE type = 'job.completed'",
    "an epoch has at most one accepted outcome": "UPDATE testigo.job SET epoch = 0",
    "a job's failures and losses": "UPDATE testigo.job SET failures = failures + 1",
    "exactly what is leased": "UPDATE testigo.job SET lease_id = NULL WHERE state = 'running'",
    "what waits for its time": f"UPDATE testigo.job SET due_at = {LATER} WHERE state = 'ready'",
    "exactly what has ended": "UPDATE testigo.job SET finished_at = NULL",
    "a job waits for parents": "DELETE FROM testigo.edge WHERE closed IS NULL",
    "an edge is open": "UPDATE testigo.job SET is_parent = false",
    "a child whose parent can never succeed": (
        "UPDATE testigo.job SET state = 'ready', finished_at = NULL WHERE reason = 'parent'"
    ),
    "a key names a job": f"UPDATE testigo.submission SET job_id = '{new_id()}'",
    "a job that a receipt accepted": "DELETE FROM testigo.job WHERE state = 'ready'",
    "a job that was superseded": f"UPDATE testigo.successor SET successor_id = '{new_id()}'",
}


@pytest.fixture
def lived_in(world: World) -> World:
    """An installation with a job in every situation that an invariant speaks of."""
    worker = world.worker()
    ends: list[Outcome] = [Succeed(), Fail("E", "again"), Fail("E", "never again", permanent=True), Block("approval")]
    world.submit(*(NewJob("work", queue="q", key=str(n)) for n in range(len(ends))))
    leases = worker.claim(len(ends)).leases
    parent = leases[2].job_id
    children = world.submit(*(NewJob("work", queue="q", parents=(parent,)) for _ in range(2)))
    world.db.run(admit)
    worker.settle(*zip(leases, ends, strict=True))
    world.db.run(reprocess, leases[3].job_id, action=world.action())
    waits_for = worker.take()
    world.submit(NewJob("work", queue="q", parents=(waits_for.job_id,)))
    world.db.run(admit)
    world.submit()
    world.db.run(cancel, world.submit(), action=world.action())
    assert [world.state(child) for child in children] == ["permanent_failure"] * 2
    return world


def test_an_installation_at_work_keeps_every_invariant(lived_in: World) -> None:
    """Nothing that commands do breaks what must hold at every moment (spec A-05, B-10, D-03, P-25)."""
    check(lived_in.db)


@pytest.mark.parametrize("promise", SABOTAGE)
def test_an_invariant_that_is_broken_is_named(lived_in: World, promise: str) -> None:
    """A row that was changed by hand is found by the invariant that speaks of it (spec A-06)."""
    lived_in.query("ALTER TABLE testigo.job DISABLE TRIGGER USER")
    lived_in.query(SABOTAGE[promise])
    assert any(line.startswith(promise) for line in broken(lived_in.db))


def test_every_invariant_can_be_broken() -> None:
    """No invariant is without a test that breaks it."""
    unbroken = [i.promise for i in INVARIANTS if not any(i.promise.startswith(promise) for promise in SABOTAGE)]
    assert not unbroken
