"""Scenes of what people and other systems order: cancel, unblock, reprocess, pause, resume, configure."""

from __future__ import annotations

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.pause import Scope, configure_queue, pause, resume
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.authority.unblock import unblock
from testigo.rules.decide import Policy
from testigo.rules.outcomes import Block, Fail
from tests.scenes.call import Call, call, scene
from tests.world import World


@scene(cancel)
def cancel_jobs_in_every_situation(world: World) -> Call:
    """One runs, one has ended, one waits, one is not admitted, one has children of each policy."""
    worker = world.worker()
    running, ended, waiting, parent = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(4)))
    worker.take()
    worker.succeed(worker.take())
    world.submit(*(NewJob("work", queue="q", parents=(parent,), policy=policy) for policy in Policy))
    world.db.run(admit)
    unadmitted = NewJob("work", queue="r", parents=(waiting,))
    world.db.run(submit_within, [unadmitted], action=world.action())
    ids = [parent, running, ended, unadmitted.id, waiting]
    return call(cancel, ids, note="enough", action=world.action()).but(note="more than enough")


@scene(unblock)
def unblock_jobs(world: World) -> Call:
    """Two that were blocked."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    worker = world.worker()
    worker.settle(*((lease, Block("approval")) for lease in worker.claim(2).leases))
    return call(unblock, jobs, note="signed", action=world.action()).but(jobs[:1])


@scene(reprocess)
def reprocess_a_job_that_failed(world: World) -> Call:
    """It has a key, and a child waits for it."""
    (job,) = world.submit(key="k")
    world.submit(NewJob("work", queue="q", parents=(job,), policy=Policy.WAIT))
    world.db.run(admit)
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "never", permanent=True)))
    made = JobId(new_id())
    return call(reprocess, job, note="again", action=world.action(), new_job_id=made).but(note="and again")


@scene(reprocess)
def reprocess_a_job_that_is_ready(world: World) -> Call:
    """Its successor takes its place before it ran."""
    (job,) = world.submit()
    world.submit(NewJob("work", queue="q", parents=(job,)))
    world.db.run(admit)
    return call(reprocess, job, action=world.action(), new_job_id=JobId(new_id())).but(note="another")


@scene(pause)
def pause_a_queue(world: World) -> Call:
    """It runs until then."""
    return call(pause, Scope.QUEUE, "q", note="flood", action=world.action()).but(note="fire")


@scene(pause)
def pause_a_kind_that_is_paused(world: World) -> Call:
    """Nothing changes, and that is the answer."""
    world.db.run(pause, Scope.KIND, "work", action=world.action())
    return call(pause, Scope.KIND, "work", action=world.action()).but(Scope.KIND, "play")


@scene(resume)
def resume_a_queue(world: World) -> Call:
    """It was paused."""
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    return call(resume, Scope.QUEUE, "q", action=world.action()).but(Scope.QUEUE, "r")


@scene(configure_queue)
def configure_a_queue(world: World) -> Call:
    """It was configured otherwise."""
    world.db.run(configure_queue, "q", stripes=4, action=world.action())
    return call(configure_queue, "q", events="full", stripes=2, action=world.action()).but(stripes=3)
