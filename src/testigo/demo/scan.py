"""The demo of a scan: real analysers look at real source, and the publisher is killed in the middle of publishing.

The demo holds the project from before there is a publisher. When that one has inserted everything and waits for the
project, whose occurrences it moves next, it is killed with SIGKILL: nothing of it is left. Another one publishes, once
and whole. In the end the database alone is asked.
"""

from __future__ import annotations

import os
import shutil
import signal
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, new_id
from testigo.demo.audience import Audience
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.listing import AnalysisDetail
from testigo.evidence.model import AnalysisId, AnalysisState, NewAnalysis
from testigo.evidence.projects import hold
from testigo.scan.crew import Crew
from testigo.scan.plan import Wanted, plan
from testigo.scan.running import followed
from testigo.scan.scope import Scope, scope
from testigo.scan.standing import Standing
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["LIBRARY", "Proof", "Scanned", "copied", "play"]

LIBRARY = "standard-library"
"""The project whose source is Python's own."""
LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Proof:
    """What the database alone says: rows of findings, transactions that wrote them, results that were published, runs
    of the publisher that were lost."""

    rows: int
    transactions: int
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
        """Whether there is one analysis, whole: every finding of every part, once, by one transaction."""
        view, proof = self.detail.view, self.proof
        whole = view.state in (AnalysisState.COMPLETE, AnalysisState.INCOMPLETE) and not self.left
        at_once = proof.rows == view.findings and proof.transactions == min(1, view.findings)
        return whole and at_once and proof.published == len(self.detail.parts)


_PROOF = Statement(
    """
    SELECT (SELECT count(*) FROM testigo.finding WHERE analysis_id = CAST(:id AS uuid)) AS rows,
           (SELECT count(DISTINCT CAST(xmin AS text)) FROM testigo.finding WHERE analysis_id = CAST(:id AS uuid))
               AS transactions,
           (SELECT count(*) FROM testigo.part WHERE analysis_id = CAST(:id AS uuid) AND result IS NOT NULL)
               AS published,
           (SELECT losses FROM testigo.job WHERE id = CAST(:job AS uuid)) AS lost
    """
)

# Of the locks, not of pg_stat_activity: that a transaction reads once, and then sees the same picture for ever.
_WAITS = Statement(
    """
    SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))) AS waits
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


def play(database: Database, project: str, tree: Path, audience: Audience[Standing], *, began_at: float) -> Scanned:
    """Play it to its end: the tree is the project's source. Raises `Broken` when a process ends that nobody killed."""

    def tell(what: str) -> None:
        audience.happens(time.monotonic() - began_at, what)

    found = scope(tree)
    queue = f"demo-{new_id()[-8:]}"
    new = plan(found, Wanted(project, queue=queue), apart=tree.parent / "analysers")
    with (
        Crew(database.given_url, database.schema, queue, roots=(tree,)) as crew,
        _Killer(database, crew, new, tell) as killer,
    ):
        analysers = ", ".join(new.analysers)
        tell(f"{len(found.files)} files, {analysers}: {len(new.parts)} jobs side by side, and one that publishes")
        shows = _Shows(tell, audience, killer, crew)
        database.run(begin_analysis, new, action=Action("demo"))
        detail = followed(database, new.id, shows=shows, check=crew.check)
        left = killer.ended()
        tell(f"the analysis is {detail.view.state}; the processes leave")
        crew.dismiss()
    proof = database.run(_proof, new.id, new.publish.id)
    return Scanned(detail, found, proof, left is not None, left or 0, time.monotonic() - began_at)


class _Shows:
    """Lets the work begin once the killer lies in wait, and tells of each analyser once that it is done."""

    def __init__(self, tell: Callable[[str], None], audience: Audience[Standing], killer: _Killer, crew: Crew) -> None:
        self._tell = tell
        self._audience = audience
        self._killer = killer
        self._crew = crew
        self._began = False
        self._said: set[str] = set()

    def __call__(self, now: Standing) -> None:
        if not self._began:
            self._began = True
            self._killer.lie_in_wait()
            self._crew.start()
            self._tell("an analyser server and a worker start; the worker has a publisher, which alone writes evidence")
        self._audience.shows(now)
        for name, tally in now.analysers.items():
            if tally.ended == tally.parts and name not in self._said:
                self._said.add(name)
                self._tell(f"{name} has looked at all its files")


class _Killer:
    """Kills the publisher once, when it has inserted everything; leaving it calls it off."""

    def __init__(self, database: Database, crew: Crew, new: NewAnalysis, tell: Callable[[str], None]) -> None:
        self._database = database
        self._crew = crew
        self._new = new
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="testigo-demo-kill")
        self._kill: Future[int | None] | None = None
        self._holds = threading.Event()
        self._called_off = threading.Event()
        self._killed = False

    def lie_in_wait(self) -> None:
        """Hold the project of the analysis, which has begun, and return when it is held: no publisher gets past."""
        self._kill = self._thread.submit(self._database.run, self._holding)
        self._kill.add_done_callback(lambda _: self._holds.set())
        self._holds.wait()

    def ended(self) -> int | None:
        """How many findings were left right after the kill; None if nothing ever came to be published."""
        self._called_off.set()
        return None if self._kill is None else self._kill.result()

    def _holding(self, c: Connection) -> int | None:
        """Kill the publisher when it waits for the project, which is held until then, and look what is there."""
        hold(c, self._new.project, make=False)
        self._holds.set()
        while not self._killed:
            if self._called_off.is_set():
                return None
            pid = self._crew.publisher() if self._waits(c) else None
            if pid is not None and self._waits(c):  # to find the process took its time
                os.kill(pid, signal.SIGKILL)
                self._killed = True
            else:
                time.sleep(LOOK_SECONDS)
        left: int = _PROOF.rows(c, id=self._new.id, job=self._new.publish.id)[0].rows
        self._tell(f"SIGKILL to the publisher, which had inserted everything; what is left of it: {left} findings")
        self._tell("another publisher starts in its place, and begins anew")
        return left

    def _waits(self, c: Connection) -> bool:
        return bool(_WAITS.rows(c)[0].waits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._called_off.set()
        self._thread.shutdown()


@single_statement
def _proof(c: Connection, analysis_id: AnalysisId, job_id: JobId) -> Proof:
    (row,) = _PROOF.rows(c, id=analysis_id, job=job_id)
    return Proof(row.rows, row.transactions, row.published, row.lost)
