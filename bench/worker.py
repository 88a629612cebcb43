"""The worker's rows: real worker processes on real jobs, and how soon what was killed runs again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.handlers import MARK
from bench.harness import Row, fill, held_snapshot, installation, vacuum
from testigo.authority.actions import Action
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit
from testigo.rules.documents import encode
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["ROWS"]

QUEUE = "bench"
PATIENCE_SECONDS = 120.0

_DRAINED = Statement(
    """
    SELECT count(*) FILTER (WHERE state = 'succeeded') AS done,
           extract(epoch FROM max(finished_at) - min(leased_at)) AS seconds
    FROM testigo.job
    """
)

_LEFT = Statement("SELECT 1 FROM testigo.job WHERE queue = :queue AND state IN ('ready', 'checkpointed') LIMIT 1")

_HELD = Statement("SELECT 1 FROM testigo.job WHERE lease_id IS NOT NULL LIMIT 1")

_SESSIONS = Statement("SELECT id FROM testigo.session WHERE state = 'open'")


def drain(url: str, scale: float) -> Iterator[Row]:
    """No-op jobs through one worker, through two, and through one while a snapshot is held."""
    jobs = int(60_000 * scale)
    alone = _drain(url, jobs, workers=1)
    yield Row("drain, one worker", alone, "jobs/s", 30_000)
    yield Row("drain, two workers", _drain(url, jobs, workers=2), "jobs/s")
    held = _drain(url, jobs, workers=1, held=True)
    yield Row("drain under a held snapshot", 100 * held / alone, "% of undisturbed", 80)
    singly = _drain(url, int(4_000 * scale), workers=4, slots=1)
    yield Row("drain, one job at a time, four workers", singly, "jobs/s", 2_000)


def latency(url: str, scale: float) -> Iterator[Row]:
    """From just before a submission to its handler's start, one job at a time, 20 ms apart, on an idle worker."""
    count = max(50, int(200 * scale))
    with _marking(url) as (db, marks), _worker(db, marks=marks):
        asked: dict[int, int] = {}
        for number in range(count + 20):
            asked[number] = time.monotonic_ns()
            db.run(submit, _mark(number), action=Action("bench"))
            time.sleep(0.02)
        begun = _marks_of(marks, count + 20)
    waits = sorted((begun[number] - asked[number]) / 1e6 for number in range(20, count + 20))
    yield Row("submit to start, median", waits[len(waits) // 2], "ms", 3, lower_is_better=True)
    yield Row("submit to start, 99 of 100", waits[int(len(waits) * 0.99)], "ms", 10, lower_is_better=True)


def idle(url: str, scale: float) -> Iterator[Row]:
    """What a worker costs that has nothing to do."""
    with _marking(url) as (db, marks), _worker(db, marks=marks) as process:
        time.sleep(5)
        before, at = _cpu_seconds(process.pid), time.monotonic()
        time.sleep(max(5.0, 30 * scale))
        share = (_cpu_seconds(process.pid) - before) / (time.monotonic() - at)
        resident = _resident_bytes(process.pid)
    yield Row("idle keeper", 100 * share, "% of a core", 1, lower_is_better=True)
    yield Row("memory of the keeper", resident / 2**20, "MiB", 80, lower_is_better=True)


def recovery(url: str, scale: float) -> Iterator[Row]:
    """From a SIGKILL to the next run of the same job."""
    with _marking(url) as (db, marks), _worker(db, marks=marks) as process:
        _begin(db, marks, 1)
        at = time.monotonic_ns()
        for runner in _children(process.pid):
            _kill(runner)
        again = _marks_of(marks, 2, of=1)
    yield Row("a killed runner's job runs again", (again[1] - at) / 1e6, "ms", 1_000, lower_is_better=True)

    with _marking(url) as (db, marks), ExitStack() as workers:
        first = workers.enter_context(_worker(db, marks=marks))
        _begin(db, marks, 1)
        at = time.monotonic_ns()
        first.kill()
        first.wait()
        workers.enter_context(_worker(db, marks=marks))
        again = _marks_of(marks, 2, of=1)
    yield Row("a killed keeper's job, by its restart", (again[1] - at) / 1e6, "ms", 1_000, lower_is_better=True)

    with _marking(url) as (db, marks), ExitStack() as workers:
        first = workers.enter_context(_worker(db, marks=marks))
        _begin(db, marks, 1)
        workers.enter_context(_worker(db, marks=marks))
        at = time.monotonic_ns()
        group = [first.pid, *_children(first.pid)]
        for pid in group:
            os.kill(pid, signal.SIGSTOP)
        again = _marks_of(marks, 2, of=1)
        for pid in group:
            _kill(pid)
    yield Row("a vanished worker's job, by another", (again[1] - at) / 1e6, "ms", 16_000, lower_is_better=True)


def _drain(url: str, jobs: int, *, workers: int, slots: int = 400, held: bool = False) -> float:
    """Jobs a second, from the first lease to the last end, by the database's own account."""
    with installation(url) as db:
        fill(db, QUEUE, jobs)
        vacuum(db)
        with held_snapshot(db) if held else nullcontext(), ExitStack() as running:
            for _ in range(workers):
                running.enter_context(_worker(db, slots=slots, runners=1, waits=False))
            _until(lambda: not db.run(lambda c: _LEFT.rows(c, queue=QUEUE)) and not db.run(lambda c: _HELD.rows(c)))
        row = db.run(lambda c: _DRAINED.row(c))
        assert row is not None
        assert row.done == jobs
        return jobs / float(row.seconds)


@contextmanager
def _marking(url: str) -> Iterator[tuple[Database, Path]]:
    with TemporaryDirectory() as folder, installation(url) as db:
        marks = Path(folder) / "marks"
        marks.touch()
        yield db, marks


@contextmanager
def _worker(
    db: Database, *, slots: int = 10, runners: int = 1, marks: Path | None = None, waits: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process, stopped at the end; with `waits`, its session is open when this begins."""
    before = _open_sessions(db)
    command = [sys.executable, "-m", "testigo.worker", "bench.handlers:app", "--url", db.given_url]
    command += ["--schema", db.schema, "--slots", str(slots), "--runners", str(runners), "--drain-seconds", "0"]
    environment = {**os.environ, "BENCH_MARKS": str(marks)}
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], env=environment) as process:
        try:
            if waits:
                _until(lambda: bool(_open_sessions(db) - before))
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def _mark(number: int, seconds: float = 0.0) -> NewJob:
    return NewJob("bench.mark", encode({"number": number, "seconds": seconds}), queue=QUEUE)


def _begin(db: Database, marks: Path, number: int) -> None:
    """Have a job begin that runs for a long time."""
    db.run(submit, _mark(number, 60.0), action=Action("bench"))
    _marks_of(marks, 1)


def _marks_of(marks: Path, count: int, of: int | None = None) -> dict[int, int]:
    """When each job last began, once so many beginnings are told, or so many of one job."""
    found: list[tuple[int, int]] = []

    def told() -> bool:
        found[:] = MARK.iter_unpack(marks.read_bytes())
        return len([number for number, _ in found if of in (None, number)]) >= count

    _until(told)
    return dict(found)


def _until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > patience:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.01)


def _open_sessions(db: Database) -> set[object]:
    return {row.id for row in db.run(lambda c: _SESSIONS.rows(c))}


def _children(pid: int) -> list[int]:
    """The runners of a keeper: the children of its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ROWS: tuple[Callable[[str, float], Iterator[Row]], ...] = (drain, latency, idle, recovery)
"""What `make bench` measures of the worker, in this order."""
