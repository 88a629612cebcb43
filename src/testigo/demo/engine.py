"""The demo of the engine: files are looked at by several workers, and things die on the way.

Jobs are submitted in parts. In the middle of each of the first three something is killed with SIGKILL, while
it has work: a runner, a whole worker, the database. The next part is submitted right after it. In the end
the workers leave, and the database is asked what became of it all.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from testigo.authority.actions import Action, new_id
from testigo.authority.submit import submit_many
from testigo.demo.audience import Audience
from testigo.demo.crew import Crew, Member
from testigo.demo.handlers import look
from testigo.demo.proof import Proof, prove
from testigo.demo.standing import Holder, Standing, holders, standing
from testigo.errors import EmbeddedUnusable
from testigo.store.database import Database
from testigo.store.embedded import EmbeddedServer
from testigo.store.embedded.address import recall

__all__ = ["Engine", "Killed", "Played", "Scene"]

WORKERS = 3
PARTS = 4
LOOK_SECONDS = 0.05
STALL_SECONDS = 60.0
"""Without a job that ends, the demo does not wait longer than this: what has not ended then is lost."""


class Scene(NamedTuple):
    """The demo at one moment: the seconds since its beginning, all files, the jobs so far, how they stand."""

    seconds: float
    files: int
    submitted: int
    standing: Standing
    members: Sequence[Member]
    database_is_up: bool


class _Victim(NamedTuple):
    """A worker that has work: what the database tells of it, and its process."""

    holder: Holder
    member: Member

    @property
    def work(self) -> str:
        """How much it has, in words."""
        return _files(self.holder.runs)


class _Stalled(Exception):
    """Nothing ends any more."""


@dataclass
class Killed:
    """What was killed with SIGKILL."""

    runners: int = 0
    workers: int = 0
    databases: int = 0


@dataclass(frozen=True)
class Played:
    """The end of the demo: what the database says, what was killed, and how long it took."""

    proof: Proof
    killed: Killed
    seconds: float
    queue: str


@dataclass
class Engine:
    """One performance on an installation, in a queue of its own. It began when `time.monotonic` was `began_at`."""

    database: Database
    crew_of: Callable[[str], Crew]
    """Makes the crew of a queue."""
    audience: Audience[Scene]
    files: Sequence[Path]
    began_at: float
    queue: str = field(default_factory=lambda: f"demo-{new_id()[-8:]}")
    killed: Killed = field(default_factory=Killed)
    submissions: list[Action] = field(default_factory=list)
    submitted: int = 0
    now: Standing = field(default_factory=Standing)

    def play(self) -> Played:
        """Play it to its end. Raises `Broken` when a worker ends that nobody killed, and what the database raises."""
        with self.crew_of(self.queue) as crew:
            try:
                self._work(crew)
            except _Stalled:
                self._tell(f"nothing has ended for {STALL_SECONDS:g} seconds, and the demo waits no longer")
            crew.dismiss()
        proof = self.database.run(prove, self.queue, self.submissions)
        return Played(proof, self.killed, time.monotonic() - self.began_at, self.queue)

    def _work(self, crew: Crew) -> None:
        first, *others = [list(self.files[part::PARTS]) for part in range(PARTS)]
        self._submit(first)
        for _ in range(WORKERS):
            crew.start()
        self._tell(f"{WORKERS} workers start, each with a process of its own for the handlers")
        for kill, part in zip((self._kill_runner, self._kill_worker, self._kill_database), others, strict=True):
            kill(crew)
            self._submit(part)
        self._until(crew, lambda now: now.ended == self.submitted)
        self._tell("every file is done; the workers leave")

    def _submit(self, files: Sequence[Path]) -> None:
        jobs = [look.options(queue=self.queue).new_job(path=str(file)) for file in files]
        if jobs:
            action = Action("demo")
            self.submissions.append(action)
            self.database.run(submit_many, jobs, action=action)
            self.submitted += len(jobs)
            self._tell(f"{_files(len(jobs))} submitted: a job for each, in one transaction")

    def _kill_runner(self, crew: Crew) -> None:
        victim = self._victim(crew)
        if victim is not None:
            for runner in victim.holder.processes.runners:
                runner.signal(signal.SIGKILL)
            self.killed.runners += 1
            self._tell(f"SIGKILL to the runner of worker {victim.member.number}, which was at {victim.work}")

    def _kill_worker(self, crew: Crew) -> None:
        victim = self._victim(crew)
        if victim is not None:
            victim.member.is_killed = True
            for process in (victim.holder.processes.keeper, *victim.holder.processes.runners):
                process.signal(signal.SIGKILL)
            self.killed.workers += 1
            self._tell(f"SIGKILL to all of worker {victim.member.number}, which was at {victim.work}")
            self._tell(f"worker {crew.start().number} starts in its place")

    def _kill_database(self, crew: Crew) -> None:
        directory = self.database.embedded_directory
        if directory is None:
            self._tell("the database is a server of yours, and is left alone")
        elif self._victim(crew) is not None:
            address = recall(directory / "server.json")
            if address is None or address.process is None:
                raise EmbeddedUnusable(f"The process of the server in {directory} cannot be told.")
            address.process.signal(signal.SIGKILL)
            self.killed.databases += 1
            self._tell("SIGKILL to the database server, in the middle of everything")
            self._show(crew, database_is_up=False)
            EmbeddedServer.use(directory).close()
            self._tell("the database server is started again, and has recovered")

    def _victim(self, crew: Crew) -> _Victim | None:
        """The worker with most runs, once a quarter of the newest part is done; None where no run was to be met."""
        goal = self.submitted - len(self.files) * (PARTS - 1) // PARTS**2
        found: list[Holder] = []

        def is_time(now: Standing) -> bool:
            found[:] = self.database.run(holders, self.queue) if now.ended >= goal else []
            return bool(found) or now.ended == self.submitted

        self._until(crew, is_time)
        if not found:
            self._tell("nothing is killed now: there was too little work to meet a run")
            return None
        (member,) = [each for each in crew.members if each.agent == found[0].agent]
        return _Victim(found[0], member)

    def _until(self, crew: Crew, is_so: Callable[[Standing], bool]) -> None:
        """Show how it stands until it is so."""
        ended, ended_at = -1, time.monotonic()
        while True:
            self.now = now = self.database.run(standing, self.queue)
            self._show(crew)
            if is_so(now):
                return
            crew.check()
            if now.ended > ended:
                ended, ended_at = now.ended, time.monotonic()
            elif time.monotonic() - ended_at > STALL_SECONDS:
                raise _Stalled
            time.sleep(LOOK_SECONDS)

    def _show(self, crew: Crew, *, database_is_up: bool = True) -> None:
        seconds = time.monotonic() - self.began_at
        scene = Scene(seconds, len(self.files), self.submitted, self.now, crew.members, database_is_up)
        self.audience.shows(scene)

    def _tell(self, what: str) -> None:
        self.audience.happens(time.monotonic() - self.began_at, what)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
