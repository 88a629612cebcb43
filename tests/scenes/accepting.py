"""Scenes of submit, admit and promote."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.authority.admit import Admitted, admit, waits_for_admission
from testigo.authority.pause import configure_queue
from testigo.authority.promote import Promoted, promote
from testigo.authority.submissions import NewJob, Submitted
from testigo.authority.submit import submit, submit_many, submit_within
from testigo.rules.decide import Policy
from testigo.rules.documents import Document
from testigo.rules.outcomes import Fail
from testigo.store.connections import run_within
from testigo.store.sql import Statement
from tests.scenes.call import LATER, Call, call, scene
from tests.world import World

WORK = NewJob("work", queue="q")
_NOTE = Statement("INSERT INTO testigo.note (note) VALUES (:note) ON CONFLICT DO NOTHING")


@scene(submit)
def submit_a_job(world: World) -> Call:
    """One job without a key."""
    job = NewJob("work", Document('{"n":1}'), queue="q")
    return call(submit, job, action=world.action()).but(replace(job, payload=Document('{"n":2}')))


@scene(submit)
def submit_a_job_with_a_key(world: World) -> Call:
    """One job with a key and everything that can be given."""
    job = NewJob("work", queue="q", key="k", run_at=LATER, start_by=LATER, finish_by=LATER, tags=("a", "b"), priority=3)
    return call(submit, job, action=world.action()).but(replace(job, tags=("a",)))


@scene(submit)
def submit_a_job_that_its_key_names_already(world: World) -> Call:
    """Work that was asked for before, by another command."""
    world.submit(key="k")
    return call(submit, NewJob("work", queue="q", key="k"), action=world.action()).but(
        NewJob("work", queue="q", key="l")
    )


@scene(submit)
def submit_a_job_with_parents(world: World) -> Call:
    """One that waits for admission, because it has parents."""
    parents = tuple(world.submit(WORK))
    job = NewJob("work", queue="q", key="k", parents=parents, policy=Policy.CANCEL)
    return call(submit, job, action=world.action()).but(replace(job, policy=Policy.WAIT))


@scene(submit_many)
def submit_a_batch_of_all_kinds(world: World) -> Call:
    """Keys that are free, taken for the same and taken for another, parents, dates, and striped streams."""
    world.db.run(configure_queue, "striped", stripes=3, action=world.action())
    parent = world.submit(key="same")[0]
    world.submit(key="other", priority=1)
    jobs = [
        NewJob("work", queue="q", key="same"),
        NewJob("work", queue="q", key="other"),
        NewJob("work", queue="q", key="free"),
        NewJob("work", queue="q", key="free"),
        NewJob("work", queue="q", parents=(parent,)),
        NewJob("work", queue="q", run_at=LATER),
        *(NewJob("work", queue="striped") for _ in range(4)),
    ]
    return call(submit_many, jobs, action=world.action()).but(jobs[:-1])


@scene(submit_within)
def submit_inside_a_transaction(world: World) -> Call:
    """A submission that is told of later."""
    jobs = [NewJob("work", queue="q", key="k"), NewJob("work", queue="q", run_at=LATER)]
    return call(submit_within, jobs, action=world.action()).but(jobs[:1])


@scene(submit_within)
def submit_inside_a_transaction_of_its_callers_own(world: World) -> Call:
    """A submission between two rows of its caller's: all three are there, or none."""
    jobs = [NewJob("work", queue="q", key="k")]
    return call(_submit_between, jobs, action=world.action()).but([NewJob("work", queue="q", key="l")])


def _submit_between(c: Connection, jobs: list[NewJob], *, action: Action) -> Submitted:
    _NOTE.rows(c, note="before")
    submitted = run_within(c, submit_within, jobs, action=action)
    _NOTE.rows(c, note="after")
    return submitted


@scene(waits_for_admission)
def look_for_what_waits_for_admission(world: World) -> Call:
    """The look that comes before an admission."""
    world.db.run(submit_within, [WORK], action=world.action())
    return call(waits_for_admission)


@scene(admit)
def admit_jobs_of_all_kinds(world: World) -> Call:
    """Without and with parents: open ones, fulfilled ones, and one that failed under each policy."""
    worker = world.worker()
    done, failed = world.submit(WORK, NewJob("work", queue="q", priority=1))
    worker.succeed(worker.take())
    worker.settle((worker.take(), Fail("E", "never", permanent=True)))
    waiting = NewJob("work", queue="q")
    world.submit(waiting)
    jobs = [
        NewJob("work", queue="q"),
        NewJob("work", queue="other", run_at=LATER),
        NewJob("work", queue="q", parents=(done,)),
        NewJob("work", queue="q", parents=(done, waiting.id), run_at=LATER),
        *(NewJob("work", queue="q", parents=(failed, waiting.id), policy=policy) for policy in Policy),
    ]
    world.db.run(submit_within, [*jobs, NewJob("work", queue="q", parents=(jobs[4].id,))], action=world.action())
    return call(admit).then(Admitted(0))


@scene(promote)
def promote_what_is_due(world: World) -> Call:
    """Jobs whose time has come: one is ready now, one waits for its parent still."""
    world.db.run(configure_queue, "q", events="full", action=world.action())
    parent = world.submit(NewJob("work", queue="elsewhere"))
    world.submit(
        NewJob("work", queue="q", run_at=LATER), NewJob("work", queue="q", run_at=LATER, parents=tuple(parent))
    )
    world.db.run(admit)
    world.query("UPDATE testigo.job SET due_at = now() - interval '1 second' WHERE due_at IS NOT NULL")
    return call(promote, "q").then(Promoted(0, None), Promoted(0, 0.0))
