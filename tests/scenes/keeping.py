"""Scenes of what takes away: redact, and the sweeps that prune."""

from __future__ import annotations

from testigo.authority.admit import admit
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import expire
from testigo.authority.prune import Pruned, prune_jobs, prune_receipts, prune_sessions, prune_tombstones
from testigo.authority.redact import Part, redact
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.journal.prune import prune_events
from testigo.rules.documents import Document
from testigo.rules.outcomes import Degrade, Fail, Succeed
from tests.scenes.call import Call, call, scene
from tests.world import Worker, World, settlement

NEVER = Fail("E", "never again", permanent=True)
NOTHING = Pruned(0, more=False)


@scene(redact)
def redact_a_job(world: World) -> Call:
    """Everything that it holds; a late result came too."""
    (job,) = world.submit(payload=Document('"secret"'))
    late, worker = world.worker(), world.worker()
    lease = late.take()
    world.db.run(close_session, late.id)
    world.db.run(expire)
    world.db.run(settle_deferred, [(0, settlement(lease, Succeed(Document('"secret"'))))], action=late.action())
    worker.settle((worker.take(), Degrade(Document('"secret"'), ("secret",))))
    return call(redact, job, list(Part), note="asked for", action=world.action()).but(note="asked for twice")


@scene(prune_jobs)
def prune_jobs_that_ended(world: World) -> Call:
    """One with a key and its successor, one whose child still waits, and that child's other parent."""
    worker = world.worker()
    (job,) = world.submit(key="k")
    worker.settle((worker.take(), NEVER))
    world.db.run(reprocess, job, action=world.action())
    worker.succeed(worker.take())
    parents = tuple(world.submit(NewJob("work", queue="q"), NewJob("work", queue="q")))
    world.submit(NewJob("work", queue="r", parents=parents))
    world.db.run(admit)
    worker.succeed(worker.take())
    return call(prune_jobs, older_than_days=0).then(NOTHING)


@scene(prune_tombstones)
def prune_what_tells_of_pruned_jobs(world: World) -> Call:
    """The key goes with the tombstone."""
    worker = world.worker()
    world.submit(key="k")
    worker.succeed(worker.take())
    world.db.run(prune_jobs, older_than_days=0)
    world.query("DELETE FROM testigo.receipt")
    return call(prune_tombstones, older_than_days=0).then(NOTHING)


@scene(prune_receipts)
def prune_receipts_below_the_floor(world: World) -> Call:
    """Each is refused already, so it is deleted."""
    world.submit()
    world.query("UPDATE testigo.installation SET receipt_floor = (SELECT max(created_at) FROM testigo.receipt)")
    return call(prune_receipts, older_than_days=0).in_steps(1, NOTHING)


@scene(prune_receipts)
def raise_the_floor_of_receipts(world: World) -> Call:
    """What lies below it is refused from now on, and then deleted."""
    world.submit()
    return call(prune_receipts, older_than_days=0).in_steps(2, Pruned(1, more=False), NOTHING)


@scene(prune_sessions)
def prune_what_sessions_left(world: World) -> Call:
    """A session's receipts up to its mark, a session that is over and has none, and one that is to be marked."""
    lives, over, left = world.worker(), world.worker(), world.worker()
    for worker in (lives, lives, left):
        _work(world, worker)
    for worker in (over, left):
        world.db.run(close_session, worker.id)
    marks = {lives.id: 3, over.id: 2**63 - 1}
    for session, mark in marks.items():
        world.query(_MARK, mark=mark, session=session)
    return call(prune_sessions, older_than_days=0).in_steps(4, Pruned(1, more=False), Pruned(2, more=False), NOTHING)


@scene(prune_events)
def prune_the_beginnings_of_streams(world: World) -> Call:
    """All but the last event of one; the jobs that it tells of are gone. Another's are young."""
    worker = world.worker()
    for _ in range(2):
        _work(world, worker)
    world.submit(queue="young")
    world.db.run(prune_jobs, older_than_days=0)
    world.age("q", up_to=3)
    return call(prune_events).then(Pruned(0, more=False))


def _work(world: World, worker: Worker) -> None:
    world.submit()
    worker.succeed(worker.take())


_MARK = "UPDATE testigo.session_profile SET receipts_below = :mark WHERE session_id = CAST(:session AS uuid)"
