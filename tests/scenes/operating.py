"""Scenes of what is done to many jobs, and of what is counted: operations, forgetting, statistics."""

from __future__ import annotations

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.read import Filter
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.operations import (
    Operation,
    OperationId,
    Selection,
    Verb,
    advance,
    begin,
    preview,
    prune_operations,
    stop,
)
from testigo.rules.decide import Policy
from testigo.rules.outcomes import Block, Fail, Succeed
from testigo.statistics import Rolled, roll_up
from tests.scenes.call import Call, call, scene
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)


@scene(forget)
def forget_ended_jobs(world: World) -> Call:
    """One has a key, one took another's place, and a child of one is there that has ended as well."""
    first, second = world.submit(NewJob("work", queue="q", key="k"), NewJob("work", queue="q"))
    world.submit(NewJob("work", queue="q", parents=(first,), policy=Policy.CANCEL))
    world.db.run(admit)
    worker = world.worker()
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(2).leases))
    newer = world.db.run(reprocess, second, action=world.action()).job_id
    worker.settle((worker.take(), DEAD_END))
    return call(forget, [first, newer], note="a test's", action=world.action()).but(note="nobody's")


@scene(preview)
def preview_an_operation(world: World) -> Call:
    """Of what failed."""
    failed(world, 2)
    return call(preview, Verb.RETRY, Selection(wanted=Filter(queue="q")))


@scene(begin)
def begin_an_operation_on_what_a_filter_finds(world: World) -> Call:
    """Two of three jobs failed."""
    failed(world, 2)
    world.submit()
    chosen = Selection(wanted=Filter(queue="q"))
    made = OperationId(new_id())
    options = {"reason": "the outage is over", "action": world.action(), "operation_id": made}
    return call(begin, Verb.RETRY, chosen, **options).but(reason="it is not")


@scene(begin)
def begin_an_operation_on_named_jobs(world: World) -> Call:
    """One of them is not there."""
    named = (*world.submit(NewJob("work", queue="q"), NewJob("work", queue="q")), JobId(new_id()))
    options = {"reason": "wrong input", "action": world.action(), "operation_id": OperationId(new_id())}
    return call(begin, Verb.CANCEL, Selection(named), **options).but(Verb.FORGET, Selection(named))


@scene(advance)
def advance_a_cancel(world: World) -> Call:
    """One runs, one waits and is waited for, one has ended, one is not there."""
    running, ended, parent = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(3)))
    world.submit(NewJob("work", queue="q", parents=(parent,), policy=Policy.CANCEL))
    world.db.run(admit)
    worker = world.worker()
    worker.take()
    worker.succeed(worker.take())
    begun(world, Verb.CANCEL, running, ended, parent, JobId(new_id()))
    return call(advance).then(None)


@scene(advance)
def advance_a_retry(world: World) -> Call:
    """Of one job, which has a key."""
    (job,) = world.submit(key="k")
    worker = world.worker()
    worker.settle((worker.take(), DEAD_END))
    begun(world, Verb.RETRY, job)
    return call(advance).then(None)


@scene(advance)
def advance_an_unblock(world: World) -> Call:
    """Of one that is blocked, and one that is not."""
    blocked, ready = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(2)))
    worker = world.worker()
    worker.settle((worker.take(), Block("approval")))
    begun(world, Verb.UNBLOCK, blocked, ready)
    return call(advance).then(None)


@scene(advance)
def advance_a_forget(world: World) -> Call:
    """Of one that failed, one that has a successor, and that successor, which runs."""
    first, second = failed(world, 2)
    newer = world.db.run(reprocess, second, action=world.action()).job_id
    world.worker().take()
    begun(world, Verb.FORGET, first, second, newer)
    return call(advance).then(None)


@scene(stop)
def stop_an_operation(world: World) -> Call:
    """It has done nothing yet."""
    going = begun(world, Verb.CANCEL, *world.submit(NewJob("work", queue="q"), NewJob("work", queue="q")))
    other = begun(world, Verb.CANCEL, *world.submit())
    return call(stop, going.id, action=world.action()).but(other.id)


@scene(prune_operations)
def prune_an_operation_that_is_over(world: World) -> Call:
    """Its items are few."""
    begun(world, Verb.CANCEL, *world.submit(NewJob("work", queue="q"), NewJob("work", queue="q")))
    world.db.run(advance)
    world.query("UPDATE testigo.operation SET ended_at = now() - interval '2 days' RETURNING 1")
    return call(prune_operations, older_than_days=1).then((0, False))


@scene(roll_up)
def roll_up_what_happened(world: World) -> Call:
    """Jobs that were done, failed, and were cancelled, in two queues."""
    _, dropped = world.submit(NewJob("work", queue="q"), NewJob("play", queue="r"))
    worker = world.worker()
    worker.settle((worker.take(), Succeed()))
    failed(world, 1)
    world.db.run(cancel, [dropped], action=world.action())
    return call(roll_up).then(Rolled(0, more=False))


def failed(world: World, count: int) -> list[JobId]:
    """So many jobs that failed for good."""
    jobs = world.submit(*(NewJob("work", queue="q", priority=-1) for _ in range(count)))
    worker = world.worker()
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(count).leases))
    return jobs


def begun(world: World, verb: Verb, *jobs: JobId) -> Operation:
    """An operation on these jobs that has done nothing yet."""
    return world.db.run(begin, verb, Selection(jobs), reason="a test", action=world.action())
