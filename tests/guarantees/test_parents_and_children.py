"""A child runs when all of its parents have succeeded, once, and never waits for what is over (spec A-08, P-25)."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import permutations

import pytest

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import take_back
from testigo.authority.promote import promote
from testigo.authority.reprocess import Reprocessed, reprocess
from testigo.authority.settle import settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.errors import StateConflict
from testigo.rules.decide import Policy
from testigo.rules.outcomes import Degrade, Fail, Outcome, Succeed
from testigo.settings import LIMITS
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.world import Worker, World, settlement

NEVER = Fail("E", "never", permanent=True)


def waits_for(*parents: JobId, policy: Policy = Policy.FAIL) -> NewJob:
    """A job that waits for others."""
    return NewJob("work", queue="children", parents=parents, policy=policy)


def test_two_parents_that_settle_at_once_release_their_child_once(world: World, rounds: Rounds) -> None:
    """Whoever closes the last edge of a child makes it ready, whichever order the two take (spec P-07, P-25)."""
    workers = [world.worker(queues=[queue]) for queue in ("left", "right")]
    for _ in rounds(3):
        lefts, rights = (world.submit(*(NewJob("work", queue=w.queues[0]) for _ in range(100))) for w in workers)
        children = world.submit(*(waits_for(*pair) for pair in zip(lefts, rights, strict=True)))
        world.db.run(admit)
        for pair in zip(*(worker.claim(100).leases for worker in workers), strict=True):
            race(world.db, *(partial(w.succeed, lease) for w, lease in zip(workers, pair, strict=True)))
        assert Counter((job.state, job.revision) for job in map(world.job, children)) == {("ready", 3): 100}


def test_a_child_that_comes_while_its_parent_settles_is_ready_in_the_end(world: World, rounds: Rounds) -> None:
    """The mark on a parent and the fast settle meet at the parent's row: no order of them loses the child
    (spec P-09, P-25)."""
    worker = world.worker()
    for _ in rounds(3):
        world.submit(*(NewJob("work", queue="q") for _ in range(100)))
        leases = worker.claim(100).leases
        children = world.submit(*(waits_for(lease.job_id) for lease in leases))
        for lease in leases:
            race(world.db, partial(worker.succeed, lease), partial(world.db.run, admit, limit=1))
        assert {world.state(child) for child in children} == {"ready"}


def test_a_settle_that_meets_the_mark_of_an_admission_is_deferred_and_releases_the_child(world: World) -> None:
    """A parent that is being marked is missed by the fast path, and accepted by the slow one (spec P-09, P-25)."""
    world.submit()
    worker = world.worker()
    lease, action = worker.take(), worker.action()
    (child,) = world.submit(waits_for(lease.job_id))
    ends = [settlement(lease, Succeed())]
    _, settled = in_line(world.db, admit, lambda: world.db.run(settle, ends, action=action))
    assert settled.deferred == (0,)
    assert world.state(child) == "inputs_pending"
    world.db.run(settle_deferred, [(0, ends[0])], action=action)
    assert world.state(child) == "ready"


def test_an_admission_that_waits_for_a_settle_sees_what_it_did(world: World) -> None:
    """What the parent's lock guards is read after it was waited for: the child of an ended parent is ready at once
    (spec P-07, P-25)."""
    world.submit()
    worker = world.worker()
    lease, action = worker.take(), worker.action()
    (child,) = world.submit(waits_for(lease.job_id))
    ends = [settlement(lease, Succeed())]
    settled, _ = in_line(world.db, lambda c: settle(c, ends, action=action), lambda: world.db.run(admit))
    assert settled.accepted == {0}
    assert world.state(child) == "ready"


@pytest.mark.parametrize("count", [0, 1, LIMITS.parents_max])
def test_a_job_that_waits_for_many_is_released_once_and_knows_how_each_ended(world: World, count: int) -> None:
    """A group of none, one or a thousand, with retries on the way, closes exactly once with the right counts
    (spec P-25; the kind of field case R100)."""
    parents = world.submit(*(NewJob("work", queue="q") for _ in range(count))) if count else []
    (child,) = world.submit(waits_for(*parents))
    world.db.run(admit)
    workers = [world.worker() for _ in range(4)]
    degraded = set(random.sample(parents, count // 3))

    def work_off(worker: Worker) -> None:
        while leases := worker.claim(50).leases:
            worker.settle(*((lease, end(lease.job_id, lease.failures)) for lease in leases))

    def end(job: JobId, failures: int) -> Outcome:
        if failures == 0 and job in set(parents[::10]):
            return Fail("E", "once more", wait_seconds=0.0)
        return Degrade("null", ("few",)) if job in degraded else Succeed()  # type: ignore[arg-type]

    race(world.db, *(partial(work_off, worker) for worker in workers))
    closed = Counter(row.closed for row in world.query("SELECT closed FROM testigo.edge"))
    assert closed == Counter(succeeded=count - len(degraded), succeeded_degraded=len(degraded))
    assert (world.state(child), world.events(child)) == ("ready", ["job.requested"])


@pytest.mark.parametrize(("policy", "end"), [(Policy.FAIL, "permanent_failure"), (Policy.CANCEL, "cancelled")])
def test_of_many_parents_that_fail_at_once_the_first_ends_the_child_and_the_rest_change_nothing(
    world: World, policy: Policy, end: str
) -> None:
    """A child ends once, however many of its parents fail or are cancelled (spec A-06, P-25; field case R100)."""
    parents = world.submit(*(NewJob("work", queue="q") for _ in range(100)))
    (child,) = world.submit(waits_for(*parents, policy=policy))
    world.db.run(admit)
    workers = [world.worker() for _ in range(3)]
    leases = [worker.claim(25).leases for worker in workers]
    race(
        world.db,
        *(partial(w.settle, *((lease, NEVER) for lease in own)) for w, own in zip(workers, leases, strict=True)),
        *(partial(world.db.run, cancel, [parent], action=world.action()) for parent in parents[75:78]),
    )
    assert world.state(child) == end
    assert len(world.events(child)) == 2
    assert world.query("SELECT count(*) AS open FROM testigo.edge WHERE closed IS NULL")[0].open == 22


def test_a_thousand_children_are_released_by_one_parent(world: World) -> None:
    """All children of a parent that ended are ready, each once (spec P-25)."""
    world.submit()
    worker = world.worker()
    lease = worker.take()
    children = world.submit(*(waits_for(lease.job_id) for _ in range(1_000)))
    world.db.run(admit)
    worker.succeed(lease)
    states = Counter((world.job(child).state, world.job(child).revision) for child in children[::50])
    assert states == {("ready", 3): 20}
    assert len(world.worker(queues=["children"]).claim(400).leases) == 400


CHAINS = {
    (Policy.FAIL, Policy.FAIL): ("permanent_failure", "permanent_failure"),
    (Policy.CANCEL, Policy.FAIL): ("cancelled", "permanent_failure"),
    (Policy.FAIL, Policy.CANCEL): ("permanent_failure", "cancelled"),
    (Policy.CANCEL, Policy.CANCEL): ("cancelled", "cancelled"),
    (Policy.WAIT, Policy.FAIL): ("inputs_pending", "inputs_pending"),
    (Policy.FAIL, Policy.WAIT): ("permanent_failure", "inputs_pending"),
    (Policy.RUN, Policy.FAIL): ("ready", "inputs_pending"),
}


@pytest.mark.parametrize("policies", CHAINS, ids=lambda pair: "-".join(pair))
@pytest.mark.parametrize("admitted", ["before", "after"])
def test_a_failure_ends_the_chain_behind_it_as_each_link_says(
    world: World, policies: tuple[Policy, Policy], admitted: str
) -> None:
    """A child that ends is itself a parent that ended, whether the chain was there before the failure or is admitted
    after it, in one batch (spec A-08, P-25)."""
    world.submit()
    worker = world.worker()
    lease = worker.take()
    links = [waits_for(lease.job_id, policy=policies[0])]
    links.append(waits_for(links[0].id, policy=policies[1]))
    links.append(waits_for(links[1].id, policy=policies[1]))
    world.submit(*links)
    if admitted == "before":
        world.db.run(admit)
    worker.settle((lease, NEVER))
    world.db.run(admit)
    first, rest = CHAINS[policies]
    last = "inputs_pending" if rest == "inputs_pending" else CHAINS[policies][1]
    assert [world.state(link.id) for link in links] == [first, rest, last]


@pytest.mark.parametrize("order", list(permutations(["succeeds", "fails", "is cancelled"])), ids=", ".join)
@pytest.mark.parametrize("admitted", ["before", "after"])
def test_a_child_that_runs_all_the_same_does_so_once_when_its_last_parent_has_ended(
    world: World, order: tuple[str, ...], admitted: str
) -> None:
    """Whatever became of them, in whichever order, and even if they ended before it was admitted (spec A-08, P-25)."""
    parents = dict(zip(order, world.submit(*(NewJob("work", queue="q", priority=n) for n in range(3))), strict=True))
    waiting = waits_for(*parents.values(), policy=Policy.RUN)
    (child,) = world.db.run(submit_within, [waiting], action=world.action()).jobs
    if admitted == "before":
        world.db.run(admit)
    worker = world.worker()
    for n, end in enumerate(order):
        if admitted == "before":
            assert (n, world.state(child.job_id)) == (n, "inputs_pending")
        if end == "is cancelled":
            world.db.run(cancel, [parents[end]], action=world.action())
        else:
            worker.settle((worker.take(), Succeed() if end == "succeeds" else NEVER))
    world.db.run(admit)
    assert (world.state(child.job_id), world.events(child.job_id)[1:]) == ("ready", [])
    assert len(world.worker(queues=["children"]).claim(2).leases) == 1


def test_a_child_that_is_to_wait_for_the_successor_of_a_failure_stops_no_other_admission(world: World) -> None:
    """The mark is for parents that can still end: one that has is not touched, and the batch goes on (spec P-25)."""
    world.submit()
    worker = world.worker()
    lease = worker.take()
    worker.settle((lease, NEVER))
    waiting, other = world.submit(waits_for(lease.job_id, policy=Policy.WAIT), waits_for(lease.job_id))
    world.db.run(admit)
    assert (world.state(waiting), world.state(other)) == ("inputs_pending", "permanent_failure")
    world.db.run(reprocess, lease.job_id, action=world.action())
    worker.succeed(worker.take())
    assert world.state(waiting) == "ready"


@pytest.mark.parametrize("admitted", ["before", "after"])
def test_who_waits_for_a_job_waits_for_its_successor(world: World, admitted: str) -> None:
    """The successor has the edges of those that wait, and of those that were on their way to wait (spec A-06, P-25)."""
    (old,) = world.submit()
    (child,) = world.submit(waits_for(old))
    if admitted == "before":
        world.db.run(admit)
    new = world.db.run(reprocess, old, action=world.action()).job_id
    world.db.run(admit)
    last = world.db.run(reprocess, new, action=world.action()).job_id
    assert (world.state(old), world.state(new), world.state(child)) == ("superseded", "superseded", "inputs_pending")
    worker = world.worker()
    lease = worker.take()
    assert lease.job_id == last
    worker.succeed(lease)
    assert world.state(child) == "ready"


def test_a_child_that_is_admitted_while_its_parent_gets_a_successor_waits_for_the_one_that_will_run(
    world: World, rounds: Rounds
) -> None:
    """Whichever of the two is first at the parent's row, the child follows the successor (spec P-07, P-25)."""
    worker = world.worker()
    for _ in rounds(60):
        (old,) = world.submit()
        (child,) = world.submit(waits_for(old))
        make = partial(world.db.run, reprocess, old, action=world.action())
        made, _ = race(world.db, make, partial(world.db.run, admit))
        (edge,) = world.query(
            "SELECT CAST(parent AS text), closed FROM testigo.edge WHERE child = CAST(:id AS uuid)", id=child
        )
        assert (edge.parent, edge.closed) == (made.job_id, None)
        worker.succeed(worker.take())
        assert world.state(child) == "ready"


def test_of_two_who_reprocess_a_job_at_once_one_makes_the_successor(world: World, rounds: Rounds) -> None:
    """A chain never forks: the second is refused, and told the successor of the first (spec A-06, P-07)."""
    for _ in rounds(50):
        (old,) = world.submit()
        tries = [partial(world.db.run, reprocess, old, action=world.action()) for _ in range(2)]
        answers = race(world.db, *tries)
        (made,) = [answer for answer in answers if isinstance(answer, Reprocessed)]
        (refused,) = [answer for answer in answers if isinstance(answer, StateConflict)]
        assert refused.facts["successor"] == made.job_id


def test_a_child_waits_for_its_time_and_then_for_its_parents(world: World, rounds: Rounds) -> None:
    """A child whose date comes while its parent settles is ready in the end, and never before its date
    (spec P-13, P-25)."""
    worker = world.worker()
    for _ in rounds(50):
        world.submit()
        lease = worker.take()
        child = waits_for(lease.job_id)
        world.submit(child)
        world.db.run(admit)
        world.query(_POSTPONE, id=child.id)
        race(world.db, partial(worker.succeed, lease), partial(world.db.run, promote, "children"))
        world.db.run(promote, "children")
        assert world.state(child.id) == "ready"


def test_a_job_that_gets_a_successor_while_it_is_claimed_or_cancelled_runs_once_or_is_left_alone(
    world: World, rounds: Rounds
) -> None:
    """Of the old job and its successor at most one can be taken: a job that somebody owns is refused, one that was
    superseded is never claimed (spec A-06, D-03)."""
    worker = world.worker()
    for _ in rounds(60):
        (old,) = world.submit()
        make = partial(world.db.run, reprocess, old, action=world.action())
        stop = partial(world.db.run, cancel, [old], action=world.action())
        made, _, claimed = race(world.db, make, stop, partial(worker.claim, 2))
        taken = [lease.job_id for lease in claimed.leases]
        if isinstance(made, StateConflict):
            assert taken == [old]
        else:
            assert world.state(old) in ("superseded", "cancelled")
            assert taken in ([], [made.job_id])
            taken += [lease.job_id for lease in worker.claim(1).leases]
            assert taken == [made.job_id]
        (row,) = world.query("SELECT * FROM testigo.job WHERE lease_id IS NOT NULL")
        world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
        world.db.run(cancel, [JobId(str(row.id))], action=world.action())


_POSTPONE = """
    UPDATE testigo.job SET state = 'created', due_at = now() - interval '1 second' WHERE id = CAST(:id AS uuid)
"""


def test_children_that_a_run_submits_with_its_end_wait_for_it_and_run_after_it(world: World, rounds: Rounds) -> None:
    """A child that is inserted with its parent's end is admitted by anybody, at any moment (spec P-11, P-25)."""
    worker = world.worker()
    for _ in rounds(50):
        world.submit()
        lease, action = worker.take(), worker.action()
        child = waits_for(lease.job_id)
        end = [(0, settlement(lease, Succeed(), children=(child,)))]
        race(world.db, partial(world.db.run, settle_deferred, end, action=action), *[partial(world.db.run, admit)] * 2)
        world.db.run(admit)
        assert world.state(child.id) == "ready"


def test_a_parent_that_is_named_twice_counts_once(world: World) -> None:
    """Each pair of parent and child has one edge (spec P-25)."""
    parents = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q"))
    (child,) = world.submit(waits_for(parents[0], parents[1], parents[0]))
    world.db.run(admit)
    worker = world.worker()
    worker.succeed(worker.take())
    assert world.state(child) == "inputs_pending"
    worker.succeed(worker.take())
    assert world.state(child) == "ready"
