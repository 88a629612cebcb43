"""All that can happen to jobs, done once: each command, along each of its ways, so that each event is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.claim import Lease
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import expire, take_back
from testigo.authority.pause import configure_queue
from testigo.authority.promote import promote
from testigo.authority.redact import Part, redact
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.sessions import close_session
from testigo.authority.settle import settle
from testigo.authority.start import start
from testigo.authority.submissions import NewJob
from testigo.authority.unblock import unblock
from testigo.rules.decide import Policy
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, Release, RunFacts, Succeed, Yield
from testigo.rules.retries import Constant, Exponential, Listed
from tests.world import Worker, World, held, settlement

__all__ = ["FACTS", "do_everything", "end", "keep_in_full", "redact_everything"]

FACTS = RunFacts("2026.11", datetime(2026, 11, 30, 12, tzinfo=UTC), 1.5, 9, 2**40)
_ENDED = """
    SELECT id
    FROM testigo.job
    WHERE queue = :queue
      AND state IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
"""
NOTE = "why — it is “known”\nand told"


def do_everything(world: World, queue: str = "q") -> None:
    """Do in this queue all that can be done to jobs."""
    hand = _Hand(world, queue)
    hand.submit_and_admit()
    hand.end_runs()
    hand.cancel()
    hand.lose_runs()
    hand.retire()
    hand.do_again()


def keep_in_full(world: World, queue: str, stripes: int = 1) -> None:
    """Have a queue keep all events of the jobs that are submitted from now on."""
    world.db.run(configure_queue, queue, events="full", stripes=stripes, action=world.action())


def redact_everything(world: World, queue: str) -> None:
    """Take the words and documents out of every job of a queue that has ended."""
    for row in world.query(_ENDED, queue=queue):
        world.db.run(redact, JobId(str(row.id)), list(Part), note=NOTE, action=world.action())


def end(worker: Worker, lease: Lease, outcome: Outcome, **more: Any) -> None:
    """Settle a run, wherever the settle leads."""
    action = worker.action()
    row = settlement(lease, outcome, **more)
    if worker.db.run(settle, [row], action=action).deferred:
        worker.db.run(settle_deferred, [(0, row)], action=action)


class _Hand:
    """Somebody who works in one queue."""

    def __init__(self, world: World, queue: str) -> None:
        self.world = world
        self.db = world.db
        self.queue = queue
        self.worker = world.worker(queues=(queue,))

    def submit(self, **given: Any) -> JobId:
        return self.world.submit(queue=self.queue, **given)[0]

    def take(self, **given: Any) -> Lease:
        """A new job, claimed: nothing else is ready at its priority."""
        self.submit(priority=-1, **given)
        return self.worker.take()

    def submit_and_admit(self) -> None:
        soon = datetime.now(UTC) + timedelta(hours=1)
        early = self.submit(run_at=soon)
        child = self.submit(run_at=soon, parents=(self.submit(run_at=soon),))
        self.db.run(admit)
        self._fall_due(early, child)
        end(self.worker, self.worker.take(), Succeed(), facts=FACTS)
        self.db.run(cancel, [child], action=self.world.action())
        self._end_a_parent(Succeed())
        failed = self._end_a_parent(Fail("E", "no", permanent=True))
        self._submit_children(failed)
        for lease in self.worker.claim().leases:
            end(self.worker, lease, Degrade(encode(1), ("half", "of it")), facts=FACTS)

    def end_runs(self) -> None:
        for outcome in (Succeed(), Degrade(encode({}), ("small",)), Fail("E", NOTE, permanent=True)):
            end(self.worker, self.take(), outcome, facts=FACTS)
        child = NewJob("work", queue=self.queue, priority=-1)
        end(self.worker, self.take(), Succeed(), facts=FACTS, children=(child,))
        self.db.run(admit)
        end(self.worker, self.worker.take(), Succeed())
        for backoff in (Constant(60), Listed((30, 60)), Exponential(1, 2)):
            end(self.worker, self.take(backoff=backoff, attempts=2), Fail("E", NOTE, "trace"), facts=FACTS)
        end(self.worker, self.take(attempts=2), Fail("E", "at once", wait_seconds=0), facts=FACTS)
        end(self.worker, self.worker.take(), Fail("E", "at its limit"))
        end(self.worker, self.take(), Yield(encode(1)), facts=FACTS)
        end(self.worker, self.worker.take(), Release(NOTE, encode(2)), facts=FACTS)
        end(self.worker, self.worker.take(), Succeed())
        end(self.worker, self.take(), Release(NOTE), facts=FACTS)
        end(self.worker, self.worker.take(), Succeed())
        for given_back in (Release(NOTE), Yield(encode(3))):
            end(self.worker, self.take(cost_limit=1.0), given_back, facts=FACTS, cost=2.0)
        self.submit(priority=-1)
        (leased,) = self.worker.claim(1, starts=False).leases
        end(self.worker, leased, Release("not now"))
        (leased,) = self.worker.claim(1, starts=False).leases
        self.db.run(start, [held(leased)], action=self.worker.action())
        end(self.worker, leased, Succeed(), facts=FACTS)

    def cancel(self) -> None:
        self.db.run(cancel, [self.submit()], note=NOTE, action=self.world.action())
        outcomes = (Succeed(), Degrade(encode(1), ("late",)), Block("quality", "x"), Yield(encode(1)), Release())
        for outcome in (*outcomes, Fail("E", NOTE), Fail("E", NOTE, permanent=True)):
            lease = self.take()
            self.db.run(cancel, [lease.job_id], action=self.world.action())
            end(self.worker, lease, outcome, facts=FACTS)

    def lose_runs(self) -> None:
        other = self.world.worker(queues=(self.queue,))
        for crash_limit in (1, 2, 2):
            self.submit(priority=-1, crash_limit=crash_limit)
        cancelled = other.claim(3).leases[-1]
        self.db.run(cancel, [cancelled.job_id], note=NOTE, action=self.world.action())
        self.submit(priority=-1)
        other.claim(1, starts=False)
        self.db.run(close_session, other.id)
        self.db.run(expire)
        unlisted = self.worker.claim(2, starts=False).leases
        self.db.run(start, [held(unlisted[0])], action=self.worker.action())
        self.db.run(take_back, self.worker.id, watermark=self.worker.n, listed=[])
        for lease in self.worker.claim(2).leases:
            end(self.worker, lease, Succeed())

    def retire(self) -> None:
        past = datetime.now(UTC) - timedelta(hours=1)
        self.submit(priority=-1, start_by=past)
        self.db.run(retire, self.worker.claim().unfit)
        self.submit(finish_by=past)
        self.submit(finish_by=past, run_at=past)
        self.db.run(retire_lapsed)

    def do_again(self) -> None:
        blocked = self.take()
        end(self.worker, blocked, Block("quality", NOTE, encode(1)), facts=FACTS)
        self.db.run(unblock, [blocked.job_id], note=NOTE, action=self.world.action())
        end(self.worker, self.worker.take(), Block("quality"), facts=FACTS)
        for job in (blocked.job_id, self.submit()):
            self.db.run(reprocess, job, note=NOTE, action=self.world.action(), new_job_id=JobId(new_id()))
        for lease in self.worker.claim().leases:
            end(self.worker, lease, Succeed())
            self.db.run(reprocess, lease.job_id, action=self.world.action())

    def _end_a_parent(self, outcome: Outcome) -> JobId:
        parent = self.submit(priority=-1)
        self._submit_children(parent)
        end(self.worker, self.worker.take(), outcome)
        return parent

    def _submit_children(self, parent: JobId) -> None:
        for policy in (Policy.FAIL, Policy.CANCEL):
            self.submit(parents=(parent,), policy=policy)
        self.db.run(admit)

    def _fall_due(self, *jobs: JobId) -> None:
        due = "UPDATE testigo.job SET due_at = now() WHERE id = ANY (CAST(:ids AS uuid[])) RETURNING 1"
        self.world.query(due, ids=list(jobs))
        self.db.run(promote, self.queue)
