"""The sweeper: what one thread does for all, beside real keepers that are killed and stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from testigo.authority.actions import JobId, SessionId
from testigo.authority.processes import record_processes
from testigo.authority.sessions import close_session
from testigo.journal.streams import read, streams
from testigo.rules.outcomes import Fail
from testigo.rules.retries import Constant
from testigo.settings import RETENTION, STORE, WORKER, Retention
from testigo.store.database import Database
from testigo.worker import hosts
from testigo.worker.sweeper import Sweeper
from tests.worker.kit import PATIENCE_SECONDS, await_state, await_that
from tests.world import World

TERM_SECONDS = 2.0


class LoneKeeper:
    """A keeper that runs as a process, with one job in one runner."""

    def __init__(self, url: str, host: str) -> None:
        command = [sys.executable, "-m", "tests.worker.lone_keeper", url, "lone", host, str(TERM_SECONDS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.session = SessionId(told["session"])
        self.children: list[int] = [told["runner"], told["child"]]
        self.starts = [hosts.started(pid) or "" for pid in self.children]

    def left(self) -> int:
        """How many of its runner and that one's child run."""
        return sum(not hosts.is_gone(*each) for each in zip(self.children, self.starts, strict=True))

    def end(self) -> None:
        """Kill all that is left."""
        self.process.kill()
        self.process.communicate()
        for pid, start in zip(self.children, self.starts, strict=True):
            if not hosts.is_gone(pid, start):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def lone_keeper(database_url: str) -> Iterator[Callable[..., LoneKeeper]]:
    """Starts lone keepers, which are of this host unless it is said otherwise."""
    begun: list[LoneKeeper] = []

    def start(host: str | None = None) -> LoneKeeper:
        begun.append(LoneKeeper(database_url, hosts.identity() if host is None else host))
        return begun[-1]

    yield start
    for keeper in begun:
        keeper.end()


class Woken:
    """The queues whose work a sweeper told of."""

    def __init__(self) -> None:
        self.queues: set[str] = set()

    def __call__(self, queues: tuple[str, ...]) -> None:
        """Told of these."""
        self.queues |= set(queues)


@contextmanager
def sweeping(db: Database, retention: Retention = RETENTION) -> Iterator[tuple[Sweeper, Woken]]:
    """A sweeper that sweeps meanwhile, and whom it has woken."""
    woken = Woken()
    sweeper = Sweeper(db, woken, retention=retention)
    sweeper.start()
    try:
        yield sweeper, woken
    finally:
        sweeper.stop()


def session_state(world: World, session: SessionId) -> str:
    """Where a session stands."""
    (row,) = world.query("SELECT state FROM testigo.session WHERE id = CAST(:id AS uuid)", id=session)
    return str(row.state)


def backends_left(world: World, session: SessionId) -> int:
    """How many of the connections that a session recorded there are."""
    (row,) = world.query(
        """
        SELECT count(*) AS n
        FROM testigo.session_profile p
             CROSS JOIN LATERAL json_to_recordset(CAST(p.processes AS json) -> 'backends')
                 AS b(pid integer, started timestamptz)
             JOIN pg_stat_activity a ON a.pid = b.pid AND a.backend_start = b.started
        WHERE p.session_id = CAST(:id AS uuid)
        """,
        id=session,
    )
    return int(row.n)


def is_dead(world: World, session: SessionId) -> bool:
    """Whether a session was declared dead."""
    return session_state(world, session) == "dead"


@pytest.mark.needs_linux
def test_the_work_of_a_killed_keeper_is_taken_back_once_nothing_of_it_runs(
    world: World, lone_keeper: Callable[..., LoneKeeper]
) -> None:
    """On its own host nobody waits for its term: its runner and what that started are killed, its session is
    closed and its job runs again, one loss later (spec P-20, field case R20)."""
    (job_id,) = world.submit()
    keeper = lone_keeper()
    with sweeping(world.db) as (_, woken):
        keeper.process.kill()
        await_state(world, job_id, "ready")
        assert keeper.left() == 0
        await_that(lambda: "q" in woken.queues, "a wake-up")
    assert session_state(world, keeper.session) == "closed"
    assert world.job(job_id).losses == 1


def test_a_keeper_of_another_host_that_is_killed_is_dead_after_its_term(
    world: World, lone_keeper: Callable[..., LoneKeeper]
) -> None:
    """Its beats are watched, and its processes are nobody's business here (spec P-18)."""
    (job_id,) = world.submit()
    keeper = lone_keeper("elsewhere")
    with sweeping(world.db):
        keeper.process.kill()
        await_state(world, job_id, "ready")
        assert keeper.left() == 2
    assert session_state(world, keeper.session) == "dead"


def test_a_keeper_that_stands_still_is_dead_after_its_term_and_changes_nothing_when_it_goes_on(
    world: World, lone_keeper: Callable[..., LoneKeeper]
) -> None:
    """It is not gone, so only its beats tell; its connections are ended, whatever they were doing, and its next beat
    is refused (spec P-10, P-16, P-18, P-20)."""
    (job_id,) = world.submit()
    keeper = lone_keeper()
    with sweeping(world.db):
        keeper.process.send_signal(signal.SIGSTOP)
        await_state(world, job_id, "ready")
        assert session_state(world, keeper.session) == "dead"
        await_that(lambda: not backends_left(world, keeper.session), "the end of its connections")
        again = world.worker().take()
        keeper.process.send_signal(signal.SIGCONT)
        _, said = keeper.process.communicate(timeout=PATIENCE_SECONDS)
    assert "SESSION_REPLACED" in said
    assert (world.state(job_id), world.job(job_id).epoch) == ("running", again.epoch)


def test_a_keeper_that_beats_keeps_its_work(world: World, lone_keeper: Callable[..., LoneKeeper]) -> None:
    """However long it is watched: another that does not beat is declared dead meanwhile, twice (spec P-18)."""
    (job_id,) = world.submit()
    lone_keeper()
    with sweeping(world.db):
        for _ in range(2):
            silent = world.worker()
            world.query("UPDATE testigo.session SET term_seconds = 2 WHERE id = CAST(:id AS uuid)", id=silent.id)
            await_that(partial(is_dead, world, silent.id), "the end of who is silent")
    row = world.job(job_id)
    assert (row.state, row.losses, row.epoch) == ("running", 0, 1)


def test_a_run_that_its_keeper_never_ends_is_ended_for_it(world: World, lone_keeper: Callable[..., LoneKeeper]) -> None:
    """The keeper beats, so its session lives; the run is a failure after its limit and two terms (spec P-22)."""
    (job_id,) = world.submit(timeout_seconds=0.1, backoff=Constant(0))
    keeper = lone_keeper()
    with sweeping(world.db) as (_, woken):
        await_state(world, job_id, "ready")
        await_that(lambda: "q" in woken.queues, "a wake-up")
    row = world.job(job_id)
    assert (row.failures, row.losses, json.loads(row.error)["code"]) == (1, 0, "TIMEOUT")
    assert session_state(world, keeper.session) == "open"


def test_what_is_due_is_done(world: World) -> None:
    """Jobs whose time comes, retries, admissions and dates, each with a wake-up for its queue if there is work
    (spec P-11, P-13, P-24)."""
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    (dated,) = world.submit(queue="dated", run_at=soon)
    (parent,) = world.submit(queue="parents")
    (child,) = world.submit(queue="children", parents=(parent,))
    (lapses,) = world.submit(queue="lapses", start_by=soon)
    (failed,) = world.submit(backoff=Constant(0.1))
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "again")))
    assert world.state(failed) == "retry_waiting"
    with sweeping(world.db) as (_, woken):
        await_state(world, dated, "ready")
        await_state(world, failed, "ready")
        await_state(world, child, "inputs_pending")
        await_state(world, lapses, "permanent_failure")
        await_that(lambda: woken.queues >= {"dated", "q", "children"}, "the wake-ups")


def test_a_session_that_is_over_keeps_nothing_however_it_ended(world: World) -> None:
    """Who closed it, when, and whether anybody told the sweeper does not matter (spec P-18)."""
    jobs = [world.submit()[0] for _ in range(3)]
    workers = [world.worker(f"agent-{n}") for n in range(3)]
    for worker in workers:
        worker.take()
    world.db.run(close_session, workers[0].id)
    with sweeping(world.db) as (sweeper, _):
        await_state(world, jobs[0], "ready")
        world.db.run(close_session, workers[1].id)
        await_state(world, jobs[1], "ready")
        world.worker("agent-2")
        sweeper.look()
        await_state(world, jobs[2], "ready")


@pytest.mark.parametrize("row", ["job", "stream"])
def test_a_client_that_stopped_while_it_held_a_lock_does_not_keep_its_jobs(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    """Its session is over, so its connections are ended, be it the jobs or their stream's head that they hold
    (spec P-10)."""
    monkeypatch.setattr("testigo.store.command.STORE", dataclasses.replace(STORE, lock_timeout_seconds=0.2))
    (job_id,) = world.submit()
    worker = world.worker()
    worker.take()
    with psycopg.connect(database_url) as stopped:
        found = stopped.execute("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        pid, began = found.fetchone() or (0, None)
        backends = [{"pid": pid, "started": began.isoformat()}]
        world.db.run(record_processes, worker.id, {"backends": backends})
        stopped.execute(f"SELECT * FROM testigo.{row} FOR UPDATE")
        world.db.run(close_session, worker.id)
        with sweeping(world.db):
            await_state(world, job_id, "ready")
        with pytest.raises(psycopg.OperationalError):
            stopped.execute("SELECT 1")


def test_a_chore_that_fails_keeps_none_of_the_others_and_goes_on_when_it_can(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, and the thread lives (field case R66)."""
    (job_id,) = world.submit()
    (dated,) = world.submit(run_at=datetime.now(UTC) + timedelta(seconds=0.1))
    worker = world.worker()
    worker.take()
    world.query("ALTER TABLE testigo.lapse RENAME TO elsewhere")
    with caplog.at_level(logging.WARNING, "testigo.worker"), sweeping(world.db):
        await_that(lambda: "a look for what is due failed" in caplog.text, "a warning")
        world.db.run(close_session, worker.id)
        await_state(world, job_id, "ready")
        world.query("ALTER TABLE testigo.elsewhere RENAME TO lapse")
        await_state(world, dated, "ready")
    assert caplog.text.count("a look for what is due failed") == 1


def test_a_sweeper_waits_for_a_database_that_is_away(world: World, server_url: str, database_url: str) -> None:
    """Its connections are ended and no other is let in for a while; then it goes on by itself (field case R66)."""
    name = database_url.rpartition("/")[2].partition("?")[0]
    with Database(database_url, pool_size=2) as own, sweeping(own), psycopg.connect(server_url, autocommit=True) as c:
        await_that(lambda: own.backends(), "the first look")
        c.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        c.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        await_that(lambda: not own.backends(), "the loss of its connections")
        c.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        (job_id,) = world.submit(run_at=datetime.now(UTC) + timedelta(seconds=0.1))
        await_state(world, job_id, "ready")


def test_what_is_kept_long_enough_is_pruned_meanwhile(quiet_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then, and nobody has to think of it (spec P-04)."""
    monkeypatch.setattr("testigo.worker.sweeper.WORKER", dataclasses.replace(WORKER, prune_seconds=0.05))
    with Database(quiet_database_url, pool_size=5) as db, sweeping(db):
        world = World(db)
        world.submit()
        world.query("UPDATE testigo.receipt SET created_at = created_at - interval '8 days'")
        await_that(lambda: not world.query("SELECT 1 FROM testigo.receipt"), "the pruning")


def test_each_thing_is_kept_for_as_long_as_is_set(quiet_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is younger than its own time stays, and a stream begins at its floor (spec P-27)."""
    monkeypatch.setattr("testigo.worker.sweeper.WORKER", dataclasses.replace(WORKER, prune_seconds=0.05))
    with Database(quiet_database_url, pool_size=5) as db:
        world = World(db)
        for days in (8, 6, 4, 2):
            _live_days_ago(world, days)
        young = _receipts(world, "WHERE created_at > now() - interval '5 days'")
        with sweeping(db, Retention(jobs_days=0, receipts_days=5, events_days=7)):
            await_that(lambda: not world.query("SELECT 1 FROM testigo.job"), "the pruning of jobs")
            await_that(lambda: _receipts(world) == young, "the pruning of receipts")
            await_that(lambda: db.run(streams)[0].floor == 2, "the pruning of events")
            await_that(lambda: len(world.query("SELECT 1 FROM testigo.tombstone")) == 4, "the tombstones")
        assert young
        assert [event.sequence for event in db.run(read, "q", after=2).events] == [3, 4, 5, 6, 7, 8]


def _receipts(world: World, which: str = "") -> set[str]:
    return {row.action for row in world.query(f"SELECT action FROM testigo.receipt {which}")}


def _live_days_ago(world: World, days: int) -> None:
    """Submit a job and run it, and let that be so long ago."""
    worker = world.worker()
    world.submit()
    worker.succeed(worker.take())
    for table, column in (("receipt", "created_at"), ("event", "at")):
        world.query(_AGE.format(table=table, column=column), days=days)


_AGE = """
    UPDATE testigo.{table}
    SET {column} = {column} - :days * interval '1 day'
    WHERE {column} > now() - interval '1 day'
    RETURNING 1
"""


def test_many_sweepers_do_each_thing_once(world: World) -> None:
    """They share the work, and nothing is counted twice (spec P-13, P-18)."""
    jobs = [JobId(each) for _ in range(30) for each in world.submit()]
    worker = world.worker()
    worker.claim(30)
    world.db.run(close_session, worker.id)
    started = threading.Barrier(3)

    def sweep() -> None:
        started.wait(PATIENCE_SECONDS)
        with sweeping(world.db):
            for job_id in jobs:
                await_state(world, job_id, "ready")

    threads = [threading.Thread(target=sweep) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows: list[Any] = world.query("SELECT losses, epoch FROM testigo.job")
    assert {(row.losses, row.epoch) for row in rows} == {(1, 1)}


def test_a_sweeper_stops_whatever_it_waits_for(world: World) -> None:
    """Once `stop` has returned no command of its is on its way."""
    with sweeping(world.db) as (sweeper, _):
        sweeper.look()
    assert not any(thread.name == "testigo-sweeper" for thread in threading.enumerate())
