"""advance and stop: what an operation does to its jobs, one step after another."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import psycopg
import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.read import tombstones
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.errors import Invalid, NotFound
from testigo.operations import (
    Item,
    Operation,
    OperationId,
    OperationState,
    Outcome,
    Selection,
    Verb,
    advance,
    begin,
    items,
    operation,
    operations,
    prune_operations,
    stop,
)
from testigo.rules.outcomes import Block, Fail
from testigo.rules.states import State
from tests.authority.paging import every
from tests.authority.paging import items as on
from tests.invariants import check
from tests.races import in_line, race
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)


def begun(world: World, verb: Verb, *jobs: JobId, actor: str = "ana") -> Operation:
    """An operation on these jobs that has done nothing yet."""
    return world.db.run(begin, verb, Selection(jobs), reason="a test", action=world.action(actor))


def submit(world: World, count: int) -> list[JobId]:
    """So many jobs."""
    return world.submit(*(NewJob("work", queue="q", priority=n) for n in range(count)))


def fail(world: World, count: int) -> list[JobId]:
    """So many jobs that failed for good."""
    jobs = submit(world, count)
    worker = world.worker()
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(count).leases))
    return jobs


def told(world: World, going: Operation) -> list[Item]:
    """What became of each job."""
    return list(world.db.run(items, going.id).items)


def finish(world: World, **given: Any) -> None:
    """Advance until nothing goes on."""
    while world.db.run(advance, **given) is not None:
        pass


def test_each_job_is_cancelled_by_its_own_command_in_the_name_of_who_ordered_it(world: World) -> None:
    """What waits ends, what runs is asked to stop, and the events name the operation's actor and reason."""
    running, waiting = submit(world, 2)
    worker = world.worker()
    worker.take()
    going = begun(world, Verb.CANCEL, running, waiting)
    step = world.db.run(advance)
    assert step == (going.id, 2, 0, False, (f"session:{worker.id}",))
    assert [item.state for item in told(world, going)] == [State.CANCELLING, State.CANCELLED]
    (event,) = world.query("SELECT actor, data FROM testigo.event WHERE type = 'job.cancelled'")
    assert (event.actor, '"note":"a test"' in event.data) == ("ana", True)
    assert world.db.run(operation, going.id).state is OperationState.DONE


def test_a_retry_makes_a_successor_of_each(world: World) -> None:
    """One job a step; the item names what came in its place, and its queue is woken."""
    jobs = fail(world, 2)
    going = begun(world, Verb.RETRY, *jobs)
    first, second = world.db.run(advance), world.db.run(advance)
    assert first is not None
    assert second is not None
    assert (first.done, first.more, first.wakes) == (1, True, ("q",))
    assert (second.done, second.more) == (1, False)
    for item in told(world, going):
        assert item.successor is not None
        assert (item.state, world.state(item.successor)) == (State.PERMANENT_FAILURE, "ready")


def test_what_changed_and_still_qualifies_is_done_and_what_does_not_is_refused(world: World) -> None:
    """A selection is of jobs, and not of their revisions: what is refused is told by its code and nothing is done."""
    changed, gone_on, resolved = fail(world, 2) + submit(world, 1)
    going = begun(world, Verb.CANCEL, resolved, changed)
    again = begun(world, Verb.RETRY, changed, gone_on, resolved)
    worker = world.worker()
    worker.settle((worker.take(), DEAD_END))
    world.db.run(reprocess, gone_on, action=world.action())
    finish(world)
    assert [item.code for item in told(world, going)] == ["TERMINAL", "TERMINAL"]
    by_job = {item.job_id: item for item in told(world, again)}
    assert (by_job[changed].outcome, by_job[resolved].outcome) == (Outcome.DONE, Outcome.DONE)
    assert (by_job[gone_on].outcome, by_job[gone_on].code) == (Outcome.REFUSED, "STATE_CONFLICT")
    assert "has a successor already" in (by_job[gone_on].message or "")
    done = world.db.run(operation, again.id)
    assert (done.done, done.refused, done.waiting, done.state) == (2, 1, 0, OperationState.DONE)


def test_blocked_jobs_are_unblocked_and_the_others_told(world: World) -> None:
    """An unblock of one is all or none; of an operation it is each by itself."""
    blocked, ready = submit(world, 2)
    worker = world.worker()
    worker.settle((worker.take(), Block("approval")))
    going = begun(world, Verb.UNBLOCK, blocked, ready, JobId(new_id()))
    world.db.run(advance)
    assert [(item.outcome, item.code) for item in told(world, going)] == [
        (Outcome.DONE, None),
        (Outcome.REFUSED, "STATE_CONFLICT"),
        (Outcome.REFUSED, "NOT_FOUND"),
    ]
    assert world.state(blocked) == "ready"


def test_forgotten_jobs_leave_tombstones_and_chains_go_whole(world: World) -> None:
    """One that went with its successor is done as well, and the reason is on its tombstone."""
    first, second = fail(world, 2)
    newer = world.db.run(reprocess, first, action=world.action()).job_id
    world.db.run(cancel, [newer], action=world.action())
    going = begun(world, Verb.FORGET, first, second, newer)
    finish(world)
    assert {item.outcome for item in told(world, going)} == {Outcome.DONE}
    for job_id in (first, second, newer):
        (left,) = world.db.run(tombstones, job_id).items
        assert (left.actor, left.note) == ("ana", "a test")
    assert world.query("SELECT 1 FROM testigo.job") == []


def test_a_step_does_so_many_and_operations_take_turns(world: World) -> None:
    """No operation waits for the end of another, however large that is."""
    large = begun(world, Verb.CANCEL, *submit(world, 5))
    small = begun(world, Verb.CANCEL, *submit(world, 2))
    steps = []
    while (step := world.db.run(advance, 2)) is not None:
        steps.append((step.operation_id, step.done))
    assert steps == [(large.id, 2), (small.id, 2), (large.id, 2), (large.id, 1)]
    check(world.db)


def test_a_stopped_operation_leaves_the_rest_as_it_was(world: World) -> None:
    """What was done stays done, the rest waits for ever; to stop it again changes nothing."""
    jobs = submit(world, 3)
    going = begun(world, Verb.CANCEL, *jobs)
    world.db.run(advance, 1)
    action = world.action("ben")
    assert world.db.run(stop, going.id, action=action).stopped
    assert world.db.run(stop, going.id, action=action).replayed
    assert not world.db.run(stop, going.id, action=world.action()).stopped
    assert world.db.run(advance) is None
    over = world.db.run(operation, going.id)
    assert (over.state, over.stopped_by, over.done, over.waiting) == (OperationState.STOPPED, "ben", 1, 2)
    assert [world.state(job) for job in jobs] == ["cancelled", "ready", "ready"]
    with pytest.raises(NotFound):
        world.db.run(stop, OperationId(new_id()), action=world.action())


def test_two_who_advance_take_different_operations(world: World) -> None:
    """Whoever has one in hand has it alone until the step is over; nobody waits (spec P-08)."""
    one, two = (begun(world, Verb.CANCEL, *submit(world, 2)) for _ in range(2))
    first, second = in_line(world.db, lambda c: advance(c), lambda: world.db.run(advance))
    assert {first.operation_id, second.operation_id} == {one.id, two.id}
    going = begun(world, Verb.CANCEL, *submit(world, 1))
    first, second = in_line(world.db, lambda c: advance(c), lambda: world.db.run(advance))
    assert (first.operation_id, second) == (going.id, None)


def test_a_stop_waits_for_the_step_under_way(world: World) -> None:
    """It is told what that did, and nothing is done after it."""
    going = begun(world, Verb.CANCEL, *submit(world, 4))
    step, stopped = in_line(
        world.db, lambda c: advance(c, 2), lambda: world.db.run(stop, going.id, action=world.action())
    )
    assert (step.done, stopped.stopped) == (2, True)
    assert world.db.run(operation, going.id).waiting == 2
    assert world.db.run(advance) is None


def test_a_cancel_of_a_person_beside_a_step_cancels_once(world: World) -> None:
    """Whoever comes second finds the job ended; each is told so (spec P-08)."""
    for _ in range(5):
        jobs = submit(world, 6)
        going = begun(world, Verb.CANCEL, *jobs)
        race(
            world.db,
            lambda: world.db.run(advance),
            partial(world.db.run, cancel, jobs[::-1], action=world.action()),
        )
        finish(world)
        assert {world.state(job) for job in jobs} == {"cancelled"}
        assert {item.code for item in told(world, going)} in ({None}, {"TERMINAL"})
        assert [world.events(job) for job in jobs] == [["job.requested", "job.cancelled"]] * 6
    check(world.db)


def test_many_who_advance_do_each_job_once(world: World) -> None:
    """However many servers there are: the counts are those of the items, and every retry has one successor."""
    jobs = fail(world, 8)
    retry = begun(world, Verb.RETRY, *jobs)
    drop = begun(world, Verb.CANCEL, *submit(world, 8))

    def work() -> int:
        done = 0
        while (step := world.db.run(advance, 3)) is not None:
            done += step.done
        return done

    assert sum(race(world.db, work, work, work)) <= 16
    finish(world)
    for going in (retry, drop):
        over = world.db.run(operation, going.id)
        assert (over.state, over.done, over.refused) == (OperationState.DONE, 8, 0)
    assert len(world.query("SELECT 1 FROM testigo.successor")) == 8
    check(world.db)


def test_items_and_operations_come_in_pages(world: World) -> None:
    """Each once, whatever the size of a page; of one outcome, or all."""
    ready = submit(world, 3)
    over = submit(world, 2)
    world.db.run(cancel, over, action=world.action())
    first = begun(world, Verb.CANCEL, *ready, *over)
    second = begun(world, Verb.CANCEL, ready[0])
    world.db.run(advance)
    pages = every(world, items, operation_id=first.id, limit=2)
    assert [item.n for item in on(pages)] == [1, 2, 3, 4, 5]
    refused = on(every(world, items, operation_id=first.id, outcome=Outcome.REFUSED, limit=1))
    assert [item.job_id for item in refused] == over
    assert on(every(world, items, operation_id=first.id, outcome=Outcome.WAITING)) == []
    assert [one.id for one in on(every(world, operations, limit=1))] == [second.id, first.id]
    running = world.db.run(operations, state=OperationState.RUNNING).items
    assert [one.id for one in running] == [second.id]
    with pytest.raises(NotFound):
        world.db.run(items, OperationId(new_id()))
    with pytest.raises(NotFound):
        world.db.run(operation, OperationId(new_id()))


def test_operations_that_ended_long_ago_are_forgotten_item_by_item(world: World) -> None:
    """In bounded steps, the oldest first; one that goes on is never touched."""
    old = begun(world, Verb.CANCEL, *submit(world, 3))
    world.db.run(advance)
    going = begun(world, Verb.CANCEL, *submit(world, 1))
    assert world.db.run(prune_operations) == (0, False)
    world.query("UPDATE testigo.operation SET ended_at = now() - interval '2 days' WHERE state = 'done' RETURNING 1")
    steps = [world.db.run(prune_operations, older_than_days=1, limit=2) for _ in range(3)]
    assert steps == [(2, True), (1, True), (0, False)]
    with pytest.raises(NotFound):
        world.db.run(operation, old.id)
    assert world.db.run(operation, going.id).total == 1


def test_a_step_has_a_size_in_bounds(world: World) -> None:
    """From 1 to the largest batch."""
    for limit in (0, 10_001):
        with pytest.raises(Invalid):
            world.db.run(advance, limit)


def test_a_fault_refuses_no_job_and_holds_up_no_other_operation(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the command says of the job is an outcome: anything else undoes the step, which is done again later."""
    jobs = fail(world, 2)
    going = begun(world, Verb.RETRY, *jobs)
    other = begun(world, Verb.CANCEL, *submit(world, 1))
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["testigo.operations.advance"], "reprocess", broken)
        assert world.db.run(advance) == (going.id, 0, 0, True, ())
        waits = [wait_of(world, going)]
        world.query(HOLD, id=going.id)
        assert world.db.run(advance) == (other.id, 1, 0, False, ())
        assert world.db.run(advance) is None
        for _ in range(9):
            come_due(world)
            assert world.db.run(advance) is not None
            waits.append(wait_of(world, going))
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 600]
    hindered = world.db.run(operation, going.id)
    assert (hindered.state, hindered.hindrance) == (OperationState.RUNNING, "ValueError: a fault")
    assert {item.outcome for item in told(world, going)} == {Outcome.WAITING}
    assert len(world.query("SELECT 1 FROM testigo.successor")) == 0
    come_due(world)
    finish(world)
    over = world.db.run(operation, going.id)
    assert (over.state, over.hindrance, over.done) == (OperationState.DONE, None, 2)


def test_a_fault_of_the_server_holds_up_no_other_operation(world: World) -> None:
    """What a statement left behind is undone with it; the secrets that its words hold are told to nobody."""
    going = begun(world, Verb.CANCEL, *submit(world, 1))
    other = begun(world, Verb.UNBLOCK, JobId(new_id()))
    world.query(
        """
        CREATE FUNCTION testigo.fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'password=hunter2hunter2'; END $$
        """
    )
    world.query("CREATE TRIGGER fails BEFORE UPDATE ON testigo.job FOR EACH ROW EXECUTE FUNCTION testigo.fail()")
    finish(world)
    assert world.db.run(operation, other.id).state is OperationState.DONE
    hindered = world.db.run(operation, going.id)
    assert hindered.state is OperationState.RUNNING
    assert hindered.hindrance is not None
    assert "hunter2" not in hindered.hindrance


def test_a_lost_connection_is_no_fault_of_the_operation(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is sent again whole, as any other; nothing is told of it."""
    going = begun(world, Verb.RETRY, *fail(world, 1))
    failures = iter([psycopg.OperationalError("the connection is closed")])

    def at_first_lost(*given: Any, **named: Any) -> Any:
        for failure in failures:
            raise failure
        return reprocess(*given, **named)

    monkeypatch.setattr(sys.modules["testigo.operations.advance"], "reprocess", at_first_lost)
    assert world.db.run(advance) == (going.id, 1, 0, False, ("q",))


def broken(*_: object, **__: object) -> None:
    """A command that has a fault."""
    raise ValueError("a fault")


def wait_of(world: World, going: Operation) -> int:
    """The seconds from the last step of an operation to its next one."""
    (row,) = world.query(
        "SELECT round(extract(epoch FROM next_at - advanced_at)) AS wait FROM testigo.operation "
        f"WHERE id = '{going.id}'"
    )
    return int(row.wait)


HOLD = "UPDATE testigo.operation SET next_at = next_at + interval '1 hour' WHERE id = CAST(:id AS uuid) RETURNING 1"
"""However slow the machine is, an operation does not come due before it is let."""


def come_due(world: World) -> None:
    """Let whatever waits for its next step have waited."""
    world.query("UPDATE testigo.operation SET next_at = advanced_at RETURNING 1")
