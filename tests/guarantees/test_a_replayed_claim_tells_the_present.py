"""Promise 4 of a claim: its answer, found again, grants what is still held and names what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testigo.authority.actions import SessionAction, new_id
from testigo.authority.cancel import cancel
from testigo.authority.claim import Claimed, QueueClaim, claim
from testigo.authority.expire import declare_dead, expire, take_back
from testigo.authority.save import save
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.rules.documents import Document
from testigo.rules.outcomes import Release, Succeed
from tests.world import Worker, World, held

Happening = Callable[[World, Worker, Claimed], object]


def settled(world: World, worker: Worker, claimed: Claimed) -> None:
    """Its run succeeded."""
    worker.settle((claimed.leases[1], Succeed()))


def released(world: World, worker: Worker, claimed: Claimed) -> None:
    """Its holder gave it back."""
    worker.settle((claimed.leases[1], Release()))


def taken_back(world: World, worker: Worker, claimed: Claimed) -> None:
    """Its holder did not list it."""
    listed = [claimed.leases[0].job_id, claimed.leases[2].job_id]
    world.db.run(take_back, worker.id, watermark=worker.n, listed=listed)


def granted_to_another(world: World, worker: Worker, claimed: Claimed) -> None:
    """It was given back, and another session has it."""
    released(world, worker, claimed)
    assert world.worker().take().job_id == claimed.leases[1].job_id


def granted_to_the_same_session_again(world: World, worker: Worker, claimed: Claimed) -> None:
    """It was given back, and a later claim of the same session has it."""
    released(world, worker, claimed)
    assert worker.take().job_id == claimed.leases[1].job_id


def cancelled(world: World, worker: Worker, claimed: Claimed) -> None:
    """It was cancelled, and its holder gave up."""
    world.db.run(cancel, [claimed.leases[1].job_id], action=world.action())
    worker.settle((claimed.leases[1], Release()))


@pytest.mark.parametrize(
    "happens",
    [settled, released, taken_back, granted_to_another, granted_to_the_same_session_again, cancelled],
)
def test_what_is_not_held_any_more_is_named_as_lost(world: World, happens: Happening) -> None:
    """Only leases that are current, read now, are granted again (spec P-05, D-03)."""
    worker, action, lease_id = prepared(world)
    first = send(world, action, lease_id)
    happens(world, worker, first)
    again = send(world, action, lease_id)
    assert (again.leases, again.lost) == ((first.leases[0], first.leases[2]), (first.leases[1].job_id,))
    assert again.replayed


@pytest.mark.parametrize("end", ["closed", "dead"])
def test_a_session_that_lost_everything_is_told_so(world: World, end: str) -> None:
    """The receipt outlives the session: its claim is answered, and grants nothing (spec P-04, P-05, P-18)."""
    worker, action, lease_id = prepared(world)
    first = send(world, action, lease_id)
    if end == "closed":
        world.db.run(close_session, worker.id)
    else:
        assert world.db.run(declare_dead, worker.id, epoch=worker.session.epoch, beat=0)
    world.db.run(expire)
    again = send(world, action, lease_id)
    assert (again.leases, sorted(again.lost)) == ((), sorted(lease.job_id for lease in first.leases))


def test_what_is_still_held_is_granted_as_it_stands(world: World) -> None:
    """A save and a cancel request leave the lease as it was; the revision and the checkpoint are the newest
    (spec P-05, P-15)."""
    worker, action, lease_id = prepared(world)
    first = send(world, action, lease_id)
    saved = world.db.run(save, held(first.leases[0]), Document('"here"'), number=1, action=worker.action())
    world.db.run(cancel, [first.leases[1].job_id], action=world.action())
    again = send(world, action, lease_id)
    assert again.lost == ()
    assert again.leases == (
        first.leases[0]._replace(revision=saved.revision, checkpoint=Document('"here"')),
        first.leases[1]._replace(revision=first.leases[1].revision + 1),
        first.leases[2],
    )


def test_a_replayed_claim_takes_nothing(world: World) -> None:
    """Whatever was lost of it, and whatever waits: what it may hold was decided when it was first sent (spec P-02)."""
    worker, action, lease_id = prepared(world)
    first = send(world, action, lease_id)
    worker.succeed(*first.leases)
    more = world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    again = send(world, action, lease_id)
    assert (again.leases, len(again.lost)) == ((), 3)
    assert [world.state(job) for job in more] == ["ready"] * 3


def test_a_claim_that_got_nothing_may_claim_when_it_is_sent_again(world: World) -> None:
    """There was nothing to answer for, so there is no receipt: the resend is a claim like any other (spec P-02)."""
    worker = world.worker()
    action, lease_id = worker.action(), new_id()
    assert send(world, action, lease_id).leases == ()
    (job,) = world.submit()
    taken = send(world, action, lease_id)
    assert ([lease.job_id for lease in taken.leases], taken.replayed) == ([job], False)


def prepared(world: World) -> tuple[Worker, SessionAction, str]:
    """A worker that is about to claim, and three jobs for it."""
    world.submit(*(NewJob("work", queue="q", priority=n) for n in range(3)))
    worker = world.worker()
    return worker, worker.action(), new_id()


def send(world: World, action: SessionAction, lease_id: str) -> Claimed:
    """Send the claim, for the first time or again."""
    return world.db.run(claim, [QueueClaim("q", 3)], ["work"], slots=3, lease_id=lease_id, action=action)
