"""Promises 1 and 6 with real processes: what a crash interrupts runs again; what keeps crashing stops at its limit."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.guarantees.crew import crew, facts_of, told
from tests.worker.kit import PATIENCE_SECONDS, WorkerProcess, await_end, await_that, new
from tests.world import World


def test_a_runner_that_is_killed_acknowledges_nothing(world: World, tmp_path: Path, database_url: str) -> None:
    """Only the child gets SIGKILL: its runs are recorded as lost, with the signal, and run again (Promise 1; field
    case R21)."""
    with crew(tmp_path, database_url) as it:
        it.ready()
        jobs = world.submit(*(new("waits", go=str(tmp_path / "go")) for _ in range(3)))
        await_that(lambda: {each.job_id for each in told(tmp_path, "waits")} == set(jobs))
        (runner,) = it.runners()
        os.kill(runner, signal.SIGKILL)
        await_that(lambda: all(world.events(job)[-1] == "job.lost" for job in jobs))
        (tmp_path / "go").touch()
        assert await_end(world, *jobs) == ["succeeded"] * 3
    for job in jobs:
        assert world.events(job) == ["job.requested", "job.lost", "job.completed"]
        (lost,) = facts_of(world, job, "job.lost")
        assert lost["exit_signal"] == signal.SIGKILL
        row = world.job(job)
        assert (row.output, row.losses, row.failures) == ("2", 1, 0)


def test_crashes_are_counted_alike_for_jobs_at_once_and_for_later(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Five attempts, and the handler ends its process each time: five runs, each recorded as lost, then the job has
    failed; one that was scheduled has the same numbers (field case R19; spec P-24)."""
    later = datetime.now(UTC) + timedelta(seconds=1)
    with crew(tmp_path, database_url, "--runners", "2") as it:
        it.ready()
        jobs = world.submit(new("exits", attempts=5), new("exits", attempts=5, run_at=later))
        assert await_end(world, *jobs) == ["permanent_failure"] * 2
    for job in jobs:
        row = world.job(job)
        assert (row.losses, row.failures, row.epoch) == (5, 0, 5)
        assert [each.epoch for each in told(tmp_path, "began") if each.job_id == job] == [1, 2, 3, 4, 5]
        assert world.events(job) == ["job.requested", *["job.lost"] * 4, "job.failed"]
        assert "RUNNER_DIED" in row.error


def test_a_job_that_kills_its_whole_worker_stops_at_its_crash_limit(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Three workers are restarted by a supervisor, and one job after the other kills the keeper that claimed it: it
    ends at its crash limit, and others, which may be lost beside it, keep flowing (Promise 6; field case R20; spec
    P-20, P-24)."""
    with ExitStack() as supervised:
        for name in ("one", "two", "three"):
            supervised.enter_context(supervisor(tmp_path / name, database_url))
        (poison,) = world.submit(new("kills-its-worker", crash_limit=3))
        others = world.submit(*(new("works", seconds=0.05, crash_limit=20) for _ in range(60)))
        assert await_end(world, poison) == ["permanent_failure"]
        assert set(await_end(world, *others)) == {"succeeded"}
    row = world.job(poison)
    assert (row.losses, row.failures, row.epoch) == (3, 0, 3)
    assert world.events(poison) == ["job.requested", "job.lost", "job.lost", "job.failed"]
    runs = [each for name in ("one", "two", "three") for each in told(tmp_path / name, "began")]
    assert sorted(each.epoch for each in runs) == [1, 2, 3]


@contextmanager
def supervisor(folder: Path, url: str) -> Iterator[None]:
    """Keep one worker running, whatever ends it."""
    over = threading.Event()

    def supervise() -> None:
        while not over.is_set():
            with crew(folder, url) as it:
                until(it, over)

    thread = threading.Thread(target=supervise)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_SECONDS)


def until(it: WorkerProcess, over: threading.Event) -> None:
    """Wait for the end of this worker, or of the supervision."""
    while it.process.poll() is None and not over.is_set():
        over.wait(0.01)
