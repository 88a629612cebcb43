"""Users who do everything that can be done to an installation, at once and by chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import expire, take_back
from testigo.authority.promote import promote
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.authority.unblock import unblock
from testigo.errors import Conflict
from testigo.rules.decide import Policy
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, Release, Succeed, Yield
from tests.world import Worker, World

__all__ = ["Somebody"]

QUEUES = [f"queue-{n}" for n in range(6)]

OUTCOMES: list[Outcome] = [
    *[Succeed()] * 5,
    Degrade(encode(1), ("half",)),
    Fail("E", "again", wait_seconds=1e-6),
    Fail("E", "never", permanent=True),
    Block("approval"),
    Yield(encode(1)),
    Release(),
]

_BLOCKED = "SELECT CAST(id AS text) AS id FROM testigo.job WHERE state = 'blocked_by_quality' LIMIT 3"


class Somebody:
    """One of those users: each `move` is one or two commands over several streams and jobs.

    `jobs` is what all of them share: the jobs that there are. With `families`, jobs wait for others;
    with `entangled`, for any other, however long the chain, and sessions die and jobs get successors.
    """

    def __init__(self, world: World, jobs: list[JobId], *, families: bool, entangled: bool) -> None:
        self._world = world
        self._jobs = jobs
        self._chance = random.Random(random.random())
        self._worker = self._open()
        self._entangled = entangled
        self._moves: list[Callable[[], Any]] = [self.submits, self.works, self.works, self.cancels, self.unblocks]
        if families:
            self._moves += [self.submits_a_family] * 2
        if entangled:
            self._moves += [self.leaves, self.reprocesses]

    def move(self) -> None:
        """Make one move; to be refused is a fine answer."""
        with suppress(Conflict):
            self._chance.choice(self._moves)()

    def submits(self) -> None:
        """Submit jobs to several queues, some under keys that others use too."""
        self._jobs += self._submit(
            [
                NewJob(
                    "work", queue=self._queue(), key=self._chance.choice([None, str(self._chance.randrange(10_000))])
                )
                for _ in range(self._chance.randint(2, 8))
            ]
        )

    def submits_a_family(self) -> None:
        """Submit jobs that wait for jobs of others."""
        children = self._submit(
            [
                NewJob("work", queue=self._queue(), parents=parents, policy=self._chance.choice(list(Policy)))
                for parents in [tuple(self._some(3)) for _ in range(self._chance.randint(1, 4))]
            ]
        )
        if self._entangled:
            self._jobs += children
        self._world.db.run(admit)

    def works(self) -> None:
        """Claim from all queues, end the runs in any order and any way, and make claimable what is due."""
        leases = list(self._worker.claim(8).leases)
        self._chance.shuffle(leases)
        if leases:
            self._worker.settle(*((lease, self._chance.choice(OUTCOMES)) for lease in leases))
        self._world.db.run(promote, self._queue())

    def cancels(self) -> None:
        """Cancel jobs of anybody, in any order."""
        if jobs := self._some(4):
            self._world.db.run(cancel, jobs, action=self._world.action())

    def unblocks(self) -> None:
        """Let blocked jobs go on."""
        if blocked := [row.id for row in self._world.query(_BLOCKED)]:
            self._world.db.run(unblock, blocked, action=self._world.action())

    def leaves(self) -> None:
        """Claim and be gone, or give back what was claimed."""
        self._worker.claim(4)
        if self._chance.random() < 0.5:
            self._world.db.run(take_back, self._worker.id, watermark=self._worker.n, listed=[])
        else:
            self._world.db.run(close_session, self._worker.id)
            self._world.db.run(expire)
            self._worker = self._open()

    def reprocesses(self) -> None:
        """Make a successor for a job of anybody."""
        for job in self._some(1):
            self._jobs.append(self._world.db.run(reprocess, job, action=self._world.action()).job_id)

    def _open(self) -> Worker:
        return self._world.worker(f"worker-{new_id()}", queues=self._chance.sample(QUEUES, len(QUEUES)))

    def _queue(self) -> str:
        return self._chance.choice(QUEUES)

    def _some(self, count: int) -> list[JobId]:
        recent = list(dict.fromkeys(self._jobs[-60:]))
        return self._chance.sample(recent, min(count, len(recent)))

    def _submit(self, jobs: list[NewJob]) -> list[JobId]:
        receipt = self._world.db.run(submit_many, jobs, action=self._world.action())
        return [row.job_id for row in receipt.jobs]
