"""Scenes of settle and settle_deferred: every way in which a run can end."""

from __future__ import annotations

from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.deferred import settle_deferred
from testigo.authority.sessions import close_session
from testigo.authority.settle import settle
from testigo.authority.submissions import NewJob
from testigo.rules.decide import Policy
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, RunFacts, Succeed, Yield
from tests.scenes.call import LATER, Call, call, scene
from tests.world import World, settlement

AGAIN = Fail("E", "try again", wait_seconds=60.0)
NEVER = Fail("E", "never again", permanent=True)


@scene(settle)
def settle_a_batch(world: World) -> Call:
    """Of two queues; one row is degraded, one failed and is deferred."""
    world.submit(*(NewJob("work", queue=queue) for queue in ("q", "r") for _ in range(2)))
    worker = world.worker(queues=("q", "r"))
    ends: list[Outcome] = [Succeed(Document("1")), Degrade(Document("2"), ("partial",)), AGAIN, Succeed()]
    rows = [settlement(lease, end) for lease, end in zip(worker.claim(4).leases, ends, strict=True)]
    unlike = [settlement(rows[0].lease, Succeed(Document("3"))), *rows[1:]]
    return call(settle, rows, action=worker.action()).but(unlike)


def _deferred(world: World, outcome: Outcome, unlike: Outcome, children: tuple[NewJob, ...] = ()) -> Call:
    """A run that ends like this, of a job that two others wait for."""
    (parent,) = world.submit(NewJob("work", queue="q", finish_by=LATER))
    world.submit(*(NewJob("work", queue="r", parents=(parent,), policy=policy) for policy in Policy))
    world.db.run(admit)
    worker = world.worker()
    lease = worker.take()
    row = (0, settlement(lease, outcome, cost=2.5, children=children, facts=RunFacts(deployment="v1")))
    other = (0, settlement(lease, unlike, children=children))
    return call(settle_deferred, [row], action=worker.action()).but([other])


@scene(settle_deferred)
def settle_a_parent_that_succeeded(world: World) -> Call:
    """Its children need not wait any more."""
    return _deferred(world, Succeed(Document("1")), Succeed())


@scene(settle_deferred)
def settle_a_parent_that_succeeded_in_part(world: World) -> Call:
    """Which is enough for its children."""
    return _deferred(world, Degrade(Document("1"), ("partial",)), Degrade(Document("1"), ("whole",)))


@scene(settle_deferred)
def settle_a_failure_that_is_tried_again(world: World) -> Call:
    """It waits for its time."""
    return _deferred(world, AGAIN, NEVER)


@scene(settle_deferred)
def settle_a_failure_for_good(world: World) -> Call:
    """Each of its children ends, or waits on, as its policy says."""
    return _deferred(world, NEVER, AGAIN)


@scene(settle_deferred)
def settle_a_run_that_is_blocked(world: World) -> Call:
    """It needs something from outside."""
    return _deferred(world, Block("approval", "a signature", Document("1")), Block("approval", "two signatures"))


@scene(settle_deferred)
def settle_a_run_that_yields(world: World) -> Call:
    """It goes on later from its checkpoint."""
    return _deferred(world, Yield(Document("1")), Yield(Document("2")))


@scene(settle_deferred)
def settle_a_run_that_is_released(world: World) -> Call:
    """Its holder gives it back."""
    return _deferred(world, Release(), Release(checkpoint=Document("1")))


@scene(settle_deferred)
def settle_a_run_that_is_lost(world: World) -> Call:
    """What ran it is gone."""
    return _deferred(world, Lose("RUNNER_DIED", "signal 9"), Lose("RUNNER_DIED", "signal 11"))


@scene(settle_deferred)
def settle_a_run_with_children(world: World) -> Call:
    """They are submitted with its end."""
    children = tuple(NewJob("work", queue="q", key=key) for key in "ab")
    return _deferred(world, Succeed(), Succeed(Document("1")), children)


@scene(settle_deferred)
def settle_a_run_that_was_cancelled(world: World) -> Call:
    """The cancel wins over the wish to go on; a batch with a run that ended as it should."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    worker = world.worker()
    leases = worker.claim(2).leases
    world.db.run(cancel, jobs[:1], action=world.action())
    rows = [(place, settlement(lease, AGAIN)) for place, lease in enumerate(leases)]
    return call(settle_deferred, rows, action=worker.action()).but([rows[0], (1, settlement(leases[1], NEVER))])


@scene(settle_deferred)
def settle_a_run_whose_lease_is_lost(world: World) -> Call:
    """What it made is kept as evidence."""
    world.submit()
    worker = world.worker()
    row = (0, settlement(worker.take(), Succeed(Document("1"))))
    action = worker.action()
    world.db.run(close_session, worker.id)
    return call(settle_deferred, [row], action=action).but([(0, settlement(row[1].lease, Succeed()))])
