"""A keeper that cannot renew stops in time, and goes on by itself (spec P-16, P-19)."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.services import Server, embedded_bindir, postgres
from tests.worker.kit import await_end, await_state, await_that, children_of, new, worker
from tests.world import World

MODULE = """
import pathlib
import time
from testigo import App, Context

app = App("jobs")

@app.job("waits", queue="q")
def waits(ctx: Context, go: str) -> int:
    while not pathlib.Path(go).exists():
        time.sleep(0.01)
    return ctx.epoch
"""
ARGUMENTS = ("--runners", "1", "--slots", "4", "--queues", "q", "--term-seconds", "2")


def stop(server: Server, number: int) -> None:
    """Send every process of a server a signal: stopped, it answers nothing and refuses nothing."""
    for pid in [server.pid, *children_of(server.pid)]:
        os.kill(pid, number)


def test_a_keeper_whose_database_hangs_kills_its_runners_and_goes_on_when_it_is_back(
    server_directory: Path, tmp_path: Path
) -> None:
    """Its session still lives, since nobody could watch it: what was killed is given back, not lost."""
    go = tmp_path / "go"
    with postgres(embedded_bindir(), server_directory) as server:
        migrate(server.url)
        with Database(server.url) as db, worker(tmp_path, server.url, MODULE, *ARGUMENTS) as it:
            world = World(db)
            it.ready()
            (job,) = world.submit(new("waits", go=str(go)))
            await_state(world, job, "running")
            before = set(it.runners())
            stop(server, signal.SIGSTOP)
            it.said("could not be renewed in time")
            await_that(lambda: not before & set(it.runners()), "the end of the runners")
            stop(server, signal.SIGCONT)
            it.said("work goes on")
            go.touch()
            assert await_end(world, job) == ["succeeded"]
            assert (world.job(job).losses, world.job(job).failures) == (0, 0)
            assert world.job(job).output == "2"
            it.signal(signal.SIGTERM)
            assert it.wait() == 0, it.log


def test_what_had_ended_before_the_fence_counts(server_directory: Path, tmp_path: Path) -> None:
    """The end of a run is told once the database is back, by the same command, and the run is not repeated."""
    go = tmp_path / "go"
    with postgres(embedded_bindir(), server_directory) as server:
        migrate(server.url)
        with Database(server.url) as db, worker(tmp_path, server.url, MODULE, *ARGUMENTS) as it:
            world = World(db)
            it.ready()
            (job,) = world.submit(new("waits", go=str(go)))
            await_state(world, job, "running")
            stop(server, signal.SIGSTOP)
            go.touch()
            it.said("could not be renewed in time")
            stop(server, signal.SIGCONT)
            assert await_end(world, job) == ["succeeded"]
            assert world.job(job).output == "1"
            it.said("work goes on")


def test_a_database_that_restarts_costs_nothing_but_time(server_directory: Path, tmp_path: Path) -> None:
    """A run goes on meanwhile: its keeper is away from its database for less than it may be."""
    go = tmp_path / "go"
    with ExitStack() as last:
        with postgres(embedded_bindir(), server_directory) as server:
            migrate(server.url)
            it = last.enter_context(worker(tmp_path, server.url, MODULE, *ARGUMENTS[:-2]))
            it.ready()
            with Database(server.url) as db:
                (job,) = World(db).submit(new("waits", go=str(go)))
                await_state(World(db), job, "running")
        go.touch()
        with postgres(embedded_bindir(), server_directory) as again, Database(again.url) as db:
            world = World(db)
            (later,) = world.submit(new("waits", go=str(go)))
            assert await_end(world, job, later) == ["succeeded", "succeeded"]
            assert world.job(job).output == "1"
            it.signal(signal.SIGTERM)
            assert it.wait() == 0, it.log
