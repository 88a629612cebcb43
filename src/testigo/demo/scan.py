"""The demo of a scan: real analysers look at real source, and the publisher is killed in the middle of publishing.

When it has inserted everything and waits to cross the boundary, which the demo holds shut meanwhile, it is killed with
SIGKILL: nothing of it is left. Another one publishes, once and whole. In the end the database alone is asked.
"""

from __future__ import annotations

import os
import shutil
import signal
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, new_id
from testigo.evidence.listing import AnalysisDetail
from testigo.evidence.model import AnalysisId, AnalysisState, NewAnalysis
from testigo.rules.states import State
from testigo.scan.crew import Crew
from testigo.scan.plan import Wanted, plan
from testigo.scan.running import followed
from testigo.scan.scope import Scope, scope
from testigo.scan.standing import Standing
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["Scanned", "copied", "play"]

PROJECT = "standard-library"
LOOK_SECONDS = 0.01
HOLD_SECONDS = 20.0
"""How long the boundary is held shut at most."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the database alone says: rows of findings, results that were published, runs of the publisher lost."""

    rows: int
    published: int
    lost: int


@dataclass(frozen=True, slots=True)
class Scanned:
    """The end of the demo; `left` are rows that were there right after the kill."""

    detail: AnalysisDetail
    scope: Scope
    proof: Proof
    killed: bool
    left: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether there is one analysis, whole: every finding of every part, once."""
        view = self.detail.view
        whole = view.state in (AnalysisState.COMPLETE, AnalysisState.INCOMPLETE) and not self.left
        return whole and self.proof.rows == view.findings and self.proof.published == len(self.detail.parts)


_PROOF = Statement(
    """
    SELECT (SELECT count(*) FROM testigo.finding WHERE analysis_id = CAST(:id AS uuid)) AS rows,
           (SELECT count(*) FROM testigo.part WHERE analysis_id = CAST(:id AS uuid) AND result IS NOT NULL)
               AS published,
           (SELECT losses FROM testigo.job WHERE id = CAST(:job AS uuid)) AS lost
    """
)

# The checkpoint is saved by then: whoever waits for the job after that is the publication itself.
_HOLD = Statement(
    "SELECT 1 AS held FROM testigo.job WHERE id = CAST(:job AS uuid) AND state = 'running' "
    "AND checkpoint IS NOT NULL FOR UPDATE"
)

_WAITS = Statement(
    """
    SELECT count(*) AS waiting
    FROM pg_stat_activity
    WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)) AND query LIKE '%testigo.job%FOR UPDATE%'
    """
)


def copied(files: Sequence[Path], into: Path) -> Path:
    """A tree of copies of files of the standard library, with their names below it."""
    root = Path(sysconfig.get_path("stdlib"))
    for file in files:
        target = into / (file.relative_to(root) if file.is_relative_to(root) else Path(file.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return into


def play(
    database: Database, url: str, schema: str, tree: Path, happens: Callable[[float, str], None], *, began_at: float
) -> Scanned:
    """Play it to its end; `happens` is told. Raises `Broken` when a process ends that nobody killed."""

    def tell(what: str) -> None:
        happens(time.monotonic() - began_at, what)

    found = scope(tree)
    queue = f"demo-{new_id()[-8:]}"
    new = plan(found, Wanted(PROJECT, queue=queue), apart=tree.parent / "analysers")
    with Crew(url, schema, queue) as crew:
        crew.start()
        tell("an analyser server and a worker start; the worker has a publisher, which alone may write evidence")
        analysers = ", ".join(new.analysers)
        tell(f"{len(found.files)} files, {analysers}: {len(new.parts)} jobs side by side, and one that publishes")
        killer = _Killer(database, crew, new, tell)
        shows = _Shows(tell, killer)
        detail = followed(database, new, action=Action("demo"), shows=shows, check=crew.check)
        killer.join()
        tell(f"the analysis is {detail.view.state}; the processes leave")
        crew.dismiss()
    proof = database.run(_proof, new.id, new.publish.id)
    return Scanned(detail, found, proof, killer.killed, killer.left, time.monotonic() - began_at)


class _Shows:
    """Tells of each analyser once that it is done, and sends the killer when publication begins."""

    def __init__(self, tell: Callable[[str], None], killer: _Killer) -> None:
        self._tell = tell
        self._killer = killer
        self._said: set[str] = set()

    def __call__(self, now: Standing) -> None:
        for name, tally in now.analysers.items():
            if tally.ended == tally.parts and name not in self._said:
                self._said.add(name)
                self._tell(f"{name} has looked at all its files")
        if now.publish in (State.LEASED, State.RUNNING):
            self._killer.go()


class _Killer:
    """Kills the publisher once, when all that it inserted waits for the commit."""

    def __init__(self, database: Database, crew: Crew, new: NewAnalysis, tell: Callable[[str], None]) -> None:
        self._database = database
        self._crew = crew
        self._new = new
        self._tell = tell
        self._thread: threading.Thread | None = None
        self.killed = False
        self.left = 0

    def go(self) -> None:
        """Begin, the first time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._kill, name="testigo-demo-kill", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait until it has done what it could."""
        if self._thread is not None:
            self._thread.join(HOLD_SECONDS)

    def _kill(self) -> None:
        if self._database.run(self._holding, self._new.publish.id):
            self._tell("another publisher starts in its place, and begins anew")
        else:
            self._tell("it was published before the publisher could be killed")

    def _holding(self, c: Connection, job_id: JobId) -> bool:
        """With the publisher's job held, so that it can't cross the boundary: kill it, and look what is there."""
        until = time.monotonic() + HOLD_SECONDS
        while not _HOLD.rows(c, job=job_id):
            if self.killed or time.monotonic() > until:
                return False
            time.sleep(LOOK_SECONDS)
        pid = self._crew.publisher()
        while pid is None or not _WAITS.rows(c)[0].waiting:
            if pid is None or time.monotonic() > until:
                return False
            time.sleep(LOOK_SECONDS)
        os.kill(pid, signal.SIGKILL)
        self.killed = True
        self.left = _PROOF.rows(c, id=self._new.id, job=job_id)[0].rows
        self._tell(f"SIGKILL to the publisher, which had inserted everything; what is left of it: {self.left} findings")
        return True


@single_statement
def _proof(c: Connection, analysis_id: AnalysisId, job_id: JobId) -> Proof:
    (row,) = _PROOF.rows(c, id=analysis_id, job=job_id)
    return Proof(row.rows, row.published, row.lost)
