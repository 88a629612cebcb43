"""The authority's rows: submit, claim and settle, their cost under load and under a held snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from bench.harness import (
    KIND,
    PAYLOAD,
    Row,
    Worker,
    fill,
    held_snapshot,
    in_threads,
    installation,
    rate,
    vacuum,
    wal_position,
)
from testigo.authority.actions import Action
from testigo.authority.promote import promote
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit
from testigo.store.database import Database

__all__ = ["ROWS"]

QUEUE = "bench"


def submit_in_batches(url: str, scale: float) -> Iterator[Row]:
    """Submission of 1,000 jobs a statement, their values made and encoded included."""
    jobs = int(60_000 * scale)
    with installation(url) as db:
        fill(db, QUEUE, 2_000)
        yield Row("submit, batches of 1,000", rate(jobs, lambda: fill(db, QUEUE, jobs)), "jobs/s", 45_000)


def submit_one_by_one(url: str, scale: float) -> Iterator[Row]:
    """Submission of one job a statement: one client, eight on one queue, eight on eight queues."""
    jobs = int(3_000 * scale)
    with installation(url, pool_size=8) as db:
        _submit(db, QUEUE, 200)
        yield Row("submit, one by one", rate(jobs, lambda: _submit(db, QUEUE, jobs)), "jobs/s", 1_500)
        eight = in_threads(8, lambda _: _submit(db, QUEUE, jobs // 4))
        yield Row("submit, eight clients, one stream", rate(jobs // 4 * 8, eight), "commands/s", 3_000)
        spread = in_threads(8, lambda at: _submit(db, f"{QUEUE}-{at}", jobs // 4))
        yield Row("submit, eight clients, eight streams", rate(jobs // 4 * 8, spread), "commands/s", 6_000)


def claim_and_settle(url: str, scale: float) -> Iterator[Row]:
    """Claim and settle in a loop on one connection, with one commit each, and the log they write."""
    goals = {100: 25_000.0}
    for batch, jobs in ((1, 2_000), (10, 10_000), (100, 60_000), (400, 60_000)):
        speed, wal = _drain(url, max(batch * 20, int(jobs * scale)), batch)
        yield Row(f"claim + settle, batches of {batch}", speed, "jobs/s", goals.get(batch))
        if batch == 100:
            yield Row("write-ahead log, claim + settle", wal, "bytes/job", 2_560, lower_is_better=True)


def under_a_held_snapshot(url: str, scale: float) -> Iterator[Row]:
    """The loop at batch 100 while a transaction is held open for the whole run, beside the same without."""
    jobs = int(60_000 * scale)
    undisturbed, _ = _drain(url, jobs, 100)
    held, _ = _drain(url, jobs, 100, held=True)
    yield Row("claim + settle under a held snapshot", 100 * held / undisturbed, "% of undisturbed", 80)


def with_a_million_waiting(url: str, scale: float) -> Iterator[Row]:
    """The loop at batch 100 with a million jobs waiting and half a million due far in the future."""
    jobs = int(20_000 * scale)
    alone, _ = _drain(url, jobs, 100)
    crowded, _ = _drain(url, jobs, 100, waiting=int(1_000_000 * scale), future=int(500_000 * scale))
    yield Row("claim + settle, a million waiting", 100 * crowded / alone, "% of an empty table's", 80)


def _drain(
    url: str, jobs: int, batch: int, *, held: bool = False, waiting: int = 0, future: int = 0
) -> tuple[float, float]:
    """The rate of draining `jobs` jobs, and the bytes of log a job, after eight batches to warm up."""
    with installation(url) as db:
        fill(db, QUEUE, jobs + 8 * batch + waiting)
        fill(db, QUEUE, future, priority=-1, run_at=datetime.now(UTC) + timedelta(days=30))
        vacuum(db)
        worker = Worker(db, QUEUE, batch)
        worker.drain(8 * batch)
        db.run(promote, QUEUE)
        before = wal_position(db)
        with held_snapshot(db) if held else nullcontext():
            speed = rate(jobs, lambda: worker.drain(jobs))
        return speed, (wal_position(db) - before) / jobs


def _submit(db: Database, queue: str, jobs: int) -> None:
    for _ in range(jobs):
        db.run(submit, NewJob(KIND, PAYLOAD, queue=queue), action=Action("bench"))


ROWS: tuple[Callable[[str, float], Iterator[Row]], ...] = (
    submit_in_batches,
    submit_one_by_one,
    claim_and_settle,
    under_a_held_snapshot,
    with_a_million_waiting,
)
"""What `make bench` measures, in this order."""
