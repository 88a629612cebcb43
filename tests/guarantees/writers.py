"""Writers of every kind: each does all sorts of things to jobs, is not always let, and undoes some of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import expire
from testigo.authority.promote import promote
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many, submit_within
from testigo.authority.unblock import unblock
from testigo.errors import Busy, Conflict, Missing
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Fail, Outcome, Release, Succeed, Yield
from tests.world import Worker, World

__all__ = ["Writer"]


class Writer:
    """One of many who write to the same streams; `known` are the jobs of all of them."""

    def __init__(self, world: World, queues: Sequence[str], known: list[JobId], dice: random.Random) -> None:
        self.deeds = 0
        """What was done so far, refused or not."""
        self.undone = 0
        """How much of it was undone before its commit."""
        self._world = world
        self._db = world.db
        self._queues = tuple(queues)
        self._known = known
        self._dice = dice
        self._worker: Worker | None = None

    def write(self, count: int) -> None:
        """Do so many things, one after another."""
        work = (self._submit, self._work) * 3
        sorts = (*work, self._control, self._sweep, self._leave, self._undo)
        for _ in range(count):
            with suppress(Busy, Conflict, Missing):
                self._dice.choice(sorts)()
            self.deeds += 1

    def _jobs(self) -> list[NewJob]:
        parents = self._some(1) if self._dice.random() < 0.3 else []
        queues = self._dice.choices(self._queues, k=self._dice.randint(1, 5))
        return [NewJob("work", queue=queue, parents=tuple(parents), attempts=2) for queue in queues]

    def _some(self, count: int) -> list[JobId]:
        """Jobs of anybody, in any state."""
        return self._dice.sample(self._known, min(count, len(self._known)))

    def _submit(self) -> None:
        door: Callable[..., Any] = self._dice.choice((submit_many, submit_within))
        jobs = self._jobs()
        self._db.run(door, jobs, action=self._world.action())
        self._known += [job.id for job in jobs]

    def _work(self) -> None:
        if self._worker is None:
            self._worker = self._world.worker(queues=self._queues)
        leases = self._worker.claim(self._dice.randint(1, 3), starts=self._dice.random() < 0.8).leases
        outcomes: list[Outcome] = [Succeed(encode(1)), Succeed(), Fail("E", "again", wait_seconds=0)]
        outcomes += [Fail("E", "over", permanent=True), Block("quality"), Yield(encode(2)), Release()]
        if leases:
            self._worker.settle(*((lease, self._dice.choice(outcomes)) for lease in leases))

    def _control(self) -> None:
        jobs = self._some(1)
        commands: tuple[Callable[..., Any], ...] = (cancel, unblock, reprocess)
        command = self._dice.choice(commands)
        if jobs:
            self._db.run(command, jobs[0] if command is reprocess else jobs, action=self._world.action())

    def _sweep(self) -> None:
        self._db.run(admit)
        self._db.run(expire)
        self._db.run(promote, self._dice.choice(self._queues))

    def _leave(self) -> None:
        """Be gone, with what is held left as it is."""
        if self._worker is not None:
            self._worker.claim(2)
            self._db.run(close_session, self._worker.id)
            self._worker = None

    def _undo(self) -> None:
        command: Callable[..., Any] = cancel if self._known and self._dice.random() < 0.5 else submit_many
        given = self._some(3) if command is cancel else self._jobs()
        action = self._world.action()

        def undone(c: Connection) -> None:
            command(c, given, action=action)
            raise _Undone

        try:
            self._db.run(undone)
        except _Undone:
            self.undone += 1


class _Undone(Exception):
    """A caller who thought better of it."""
