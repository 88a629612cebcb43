"""forget: what has ended goes before its time, as pruning would take it, and nothing that is needed does."""

from __future__ import annotations

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.read import tombstones
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import How, NewJob
from testigo.authority.submit import submit
from testigo.errors import ActionIdCollision, Conflict, NotFound, StateConflict
from testigo.rules.decide import Policy
from testigo.rules.outcomes import Fail
from tests.invariants import check
from tests.races import in_line
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)


def fail(world: World, count: int = 1) -> list[JobId]:
    """So many jobs that failed for good."""
    jobs = world.submit(*(NewJob("work", queue="q", priority=-1) for _ in range(count)))
    worker = world.worker()
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(count).leases))
    return jobs


def left(world: World) -> set[str]:
    """The ids of the jobs that are left."""
    return {row.id for row in world.query("SELECT CAST(id AS text) AS id FROM testigo.job")}


def test_a_forgotten_job_leaves_a_tombstone_that_says_who_and_why(world: World) -> None:
    """It cannot be asked for any more, and what is left of it tells the state in which it ended (spec P-26)."""
    gone, kept = fail(world, 2)
    answer = world.db.run(forget, [gone], "a test's", action=world.action("ana"))
    assert (answer.jobs, answer.replayed, left(world)) == ((gone,), False, {kept})
    (told,) = world.db.run(tombstones, gone).items
    assert (told.what, told.state, told.actor, told.note) == ("pruned", "permanent_failure", "ana", "a test's")
    check(world.db)


def test_a_key_stays_with_its_tombstone(world: World) -> None:
    """Work that was done is not done again because its job was forgotten (spec P-04)."""
    asked = NewJob("work", queue="q", key="k")
    world.db.run(submit, asked, action=world.action())
    world.db.run(cancel, [asked.id], action=world.action())
    world.db.run(forget, [asked.id], action=world.action())
    (again,) = world.db.run(submit, NewJob("work", queue="q", key="k"), action=world.action()).jobs
    assert (again.how, again.job_id) == (How.EXISTING, asked.id)


def test_a_chain_goes_whole_with_its_last_job(world: World) -> None:
    """What took another's place takes it along; the old one alone is refused."""
    (first,) = fail(world)
    second = world.db.run(reprocess, first, action=world.action()).job_id
    with pytest.raises(StateConflict, match="has a successor"):
        world.db.run(forget, [first], action=world.action())
    with pytest.raises(StateConflict, match="has not ended"):
        world.db.run(forget, [second], action=world.action())
    world.db.run(cancel, [second], action=world.action())
    answer = world.db.run(forget, [first, second], action=world.action())
    assert (set(answer.jobs), left(world)) == ({first, second}, set())


def test_what_others_wait_for_stays(world: World) -> None:
    """A parent whose child waits for something better to come of it is needed (spec P-25)."""
    (parent,) = world.submit(priority=-1)
    (child,) = world.submit(parents=(parent,), policy=Policy.WAIT)
    world.db.run(admit)
    worker = world.worker()
    worker.settle((worker.take(), DEAD_END))
    with pytest.raises(StateConflict, match="still needed"):
        world.db.run(forget, [parent], action=world.action())
    world.db.run(cancel, [child], action=world.action())
    world.db.run(forget, [child], action=world.action())
    assert world.db.run(forget, [parent], action=world.action()).jobs == (parent,)


def test_all_go_or_none(world: World) -> None:
    """One that is not there, or not over, keeps the others (B-02)."""
    (over,) = fail(world)
    (ready,) = world.submit()
    for other, refusal in ((JobId(new_id()), NotFound), (ready, StateConflict)):
        with pytest.raises(refusal):
            world.db.run(forget, [over, other], action=world.action())
    assert left(world) == {over, ready}


def test_a_resend_forgets_nothing_more(world: World) -> None:
    """The receipt is the answer (spec B-04)."""
    jobs, action = fail(world, 2), world.action()
    first = world.db.run(forget, jobs[:1], action=action)
    assert world.db.run(forget, jobs[:1], action=action).jobs == first.jobs
    with pytest.raises(ActionIdCollision):
        world.db.run(forget, jobs, action=action)
    assert left(world) == {jobs[1]}


def test_whoever_retries_a_job_that_is_being_forgotten_is_told_so(world: World) -> None:
    """And the other way round: one of them finds what the other did, under the job's lock (spec P-07)."""
    (one,), (two,) = fail(world), fail(world)
    _, retried = in_line(
        world.db,
        lambda c: forget(c, [one], action=world.action()),
        lambda: world.db.run(reprocess, one, action=world.action()),
    )
    assert isinstance(retried, NotFound)
    made, forgotten = in_line(
        world.db,
        lambda c: reprocess(c, two, action=world.action()),
        lambda: world.db.run(forget, [two], action=world.action()),
    )
    assert isinstance(forgotten, Conflict)
    assert left(world) == {two, made.job_id}
    check(world.db)
