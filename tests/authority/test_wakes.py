"""What a command's answer says of who should look again: queues with work in them, and sessions that must stop."""

from __future__ import annotations

import threading

import pytest

from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.deferred import settle_deferred
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.authority.unblock import unblock
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Fail, Lose, Outcome, Release, Succeed, Yield
from tests.worker.kit import await_that
from tests.world import World, settlement

PATIENCE_SECONDS = 90.0


@pytest.mark.parametrize(
    ("outcome", "wakes"),
    [
        (Succeed(), ()),
        (Fail("E", "at once", wait_seconds=0.0), ("q",)),
        (Fail("E", "later", wait_seconds=60.0), ()),
        (Fail("E", "never", permanent=True), ()),
        (Lose("E", "gone"), ("q",)),
        (Release(), ("q",)),
        (Yield(Document("1")), ("q",)),
        (Block("approval"), ()),
    ],
)
def test_a_run_that_ends_wakes_its_queue_if_it_may_run_again_now(
    world: World, outcome: Outcome, wakes: tuple[str, ...]
) -> None:
    """What waits or has ended is nothing to claim; and a resend wakes whom the first answer did not reach (P-13)."""
    world.submit()
    worker = world.worker()
    row = (0, settlement(worker.take(), outcome))
    action = worker.action()
    for _ in range(2):
        assert world.db.run(settle_deferred, [row], action=action).wakes == wakes


def test_a_parent_that_ends_wakes_the_queues_of_its_children(world: World) -> None:
    """Those of the children that are ready now, each once, and not of one that waits for another (spec P-25)."""
    parent, other = world.submit()[0], world.submit(queue="elsewhere")[0]
    world.submit(*(NewJob("work", queue=queue, parents=(parent,)) for queue in ("b", "a", "b")))
    world.submit(queue="c", parents=(parent, other))
    world.db.run(admit)
    worker = world.worker()
    row = (0, settlement(worker.take(), Succeed()))
    assert world.db.run(settle_deferred, [row], action=worker.action()).wakes == ("a", "b")


def test_a_cancel_names_the_sessions_whose_holders_are_to_stop(world: World) -> None:
    """Each holder once, also when it was asked before; nobody for what nobody owns (spec D-20, Promise 7)."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(4)))
    ann, bob = world.worker(), world.worker()
    ann.claim(2)
    bob.claim(1)
    wakes = tuple(sorted(f"session:{worker.id}" for worker in (ann, bob)))
    action = world.action()
    for _ in range(2):
        assert world.db.run(cancel, jobs, action=action).wakes == wakes
    assert world.db.run(cancel, jobs[:3], action=world.action()).wakes == wakes
    assert world.db.run(cancel, jobs[3:], action=world.action()).wakes == ()


def test_a_keeper_that_listens_hears_of_a_cancel_at_once(world: World) -> None:
    """It subscribes to its session's name, and need not wait for its next beat (spec D-20)."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.take()
    heard = threading.Event()
    await_that(lambda: world.db.listener.hears, "the listener")
    with world.db.listener.subscribed(f"session:{worker.id}", heard.set):
        world.db.run(cancel, [job_id], action=world.action())
        assert heard.wait(PATIENCE_SECONDS)


def test_what_is_sent_back_to_work_wakes_its_queue(world: World) -> None:
    """A job that is unblocked, and one that is done again (spec A-06, A-13)."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.settle((worker.take(), Block("approval")))
    assert world.db.run(unblock, [job_id], action=world.action()).wakes == ("q",)
    assert world.db.run(reprocess, job_id, action=world.action()).wakes == ("q",)
