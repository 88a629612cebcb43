"""One day in the life of a queue: every command once, on an installation of any kind.

Days of several queues may be lived at the same time, in one process or many: what a sweep does for one
of them, a sweep of another may have done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from testigo.authority.actions import JobId
from testigo.authority.admit import admit, waits_for_admission
from testigo.authority.cancel import How as CancelHow
from testigo.authority.cancel import cancel
from testigo.authority.deferred import How, SettledRow
from testigo.authority.expire import declare_dead, expire, read_beats, take_back
from testigo.authority.pause import Scope, configure_queue, pause, resume
from testigo.authority.promote import promote
from testigo.authority.renew import renew
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.save import save
from testigo.authority.sessions import close_session, drain_session
from testigo.authority.start import start
from testigo.authority.submissions import How as SubmitHow
from testigo.authority.submissions import NewJob, SubmittedJob
from testigo.authority.submit import submit, submit_within
from testigo.authority.unblock import unblock
from testigo.journal.streams import read
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Fail, Outcome
from testigo.store.database import Database
from tests.world import Worker, World, held

__all__ = ["live_a_day", "until"]

PATIENCE_SECONDS = 60.0


def live_a_day(db: Database, queue: str) -> None:
    """Send every command, and see that each does what it promises."""
    world = World(db)
    worker = world.worker(queues=(queue,))
    _submit(world, queue)
    _work(world, worker, queue)
    _control(world, worker, queue)
    _sweep(world, worker, queue)
    _leave(world, worker, queue)


def until(seen: Callable[[], bool], what: str) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not seen():
        assert time.monotonic() < deadline, f"{what}: not seen in {PATIENCE_SECONDS} s"
        time.sleep(0.01)


def _submit(world: World, queue: str) -> None:
    db = world.db
    db.run(configure_queue, queue, events="full", stripes=2, action=world.action())
    first, second = (_submit_keyed(world, queue) for _ in range(2))
    assert (first.how, second) == (SubmitHow.ACCEPTED, (first.job_id, SubmitHow.EXISTING))
    db.run(submit_within, [NewJob("work", queue=queue, parents=(first.job_id,))], action=world.action())
    (other,) = db.run(submit_within, [NewJob("work", queue=queue)], action=world.action()).jobs

    def admitted() -> bool:
        if db.run(waits_for_admission):
            db.run(admit)
        return world.state(other.job_id) == "ready"

    until(admitted, "the admission of what was submitted within a transaction")


def _submit_keyed(world: World, queue: str) -> SubmittedJob:
    job = NewJob("work", encode({"n": 1}), queue, key=queue)
    (answer,) = world.db.run(submit, job, action=world.action()).jobs
    return answer


def _work(world: World, worker: Worker, queue: str) -> None:
    """Three jobs are there: the keyed one, one that waits for it, and another."""
    db = world.db
    (lease,) = worker.claim(1, starts=False).leases
    assert db.run(start, [held(lease)], action=worker.action()).running == (lease.job_id,)
    assert not db.run(save, held(lease), encode([1, 2]), number=1, action=worker.action()).superseded
    beat = db.run(renew, worker.id, [held(lease)], epoch=worker.session.epoch, beat=1, low_water=0)
    assert (beat.draining, beat.lost, beat.cancelling) == (False, (), ())
    worker.succeed(lease)
    rest = worker.claim().leases
    assert len(rest) == 2
    worker.succeed(*rest)
    _fails_at_first(world, worker, queue)
    events = db.run(read, world.job(lease.job_id).stream).events
    told = [event.type for event in events if event.subject == lease.job_id]
    assert told == ["job.requested", "job.leased", "job.started", "job.completed"]


def _fails_at_first(world: World, worker: Worker, queue: str) -> None:
    (job,) = world.submit(queue=queue, attempts=2)
    _end(worker, Fail("E", "later", wait_seconds=3600))
    assert world.state(job) == "retry_waiting"
    world.query("UPDATE testigo.job SET due_at = now() WHERE id = CAST(:id AS uuid)", id=job)
    until(lambda: world.db.run(promote, queue).promoted == 0 and world.state(job) == "ready", "the promotion")
    worker.succeed(worker.take())


def _control(world: World, worker: Worker, queue: str) -> None:
    db = world.db
    (job,) = world.submit(queue=queue)
    assert db.run(pause, Scope.QUEUE, queue, action=world.action()).changed
    assert not worker.claim().leases
    assert db.run(resume, Scope.QUEUE, queue, action=world.action()).changed
    _end(worker, Block("quality", "evidence"))
    db.run(unblock, [job], action=world.action())
    lease = worker.take()
    (asked,) = db.run(cancel, [job], action=world.action()).jobs
    assert asked.how is CancelHow.REQUESTED
    worker.settle((lease, Fail("E", "stopped")))
    assert world.state(job) == "cancelled"
    again = db.run(reprocess, job, action=world.action())
    assert worker.take().job_id == again.job_id
    db.run(take_back, worker.id, watermark=worker.n, listed=())
    worker.succeed(worker.take())


def _sweep(world: World, worker: Worker, queue: str) -> None:
    db = world.db
    (fit,) = world.submit(queue=queue)
    assert db.run(retire, [fit]) == 0
    (late,) = world.submit(queue=queue, start_by=datetime.now(UTC) - timedelta(days=1))
    until(lambda: db.run(retire_lapsed) == 0 and world.state(late) == "permanent_failure", "the end of what is late")
    other = world.worker(queues=(queue,))
    lost = other.take()
    beats = {str(reading.session_id): reading for reading in db.run(read_beats).readings}
    assert db.run(declare_dead, other.id, epoch=other.session.epoch, beat=beats[other.id].beat)

    def taken_back() -> bool:
        db.run(expire)
        return world.state(lost.job_id) == "ready"

    until(taken_back, "the return of what a dead session held")
    worker.succeed(worker.take())


def _leave(world: World, worker: Worker, queue: str) -> None:
    world.db.run(drain_session, worker.id)
    world.db.run(close_session, worker.id)
    left = "SELECT id FROM testigo.job WHERE queue = :queue AND state IN ('ready', 'checkpointed')"
    assert not world.query(left, queue=queue)


def _end(worker: Worker, outcome: Outcome) -> JobId:
    """Take a job and end its run by what the fast path defers."""
    lease = worker.take()
    (row,) = worker.settle_slowly((lease, outcome))
    assert row == SettledRow(lease.job_id, How.ACCEPTED, row.state)
    return lease.job_id
