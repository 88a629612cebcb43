"""A database that restarts, hangs, refuses, or has no room: work waits for it, and goes on by itself."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.guarantees.crew import HANDLERS, crew, told
from tests.services import Server, database_url, embedded_bindir, postgres
from tests.worker.kit import await_end, await_that, new
from tests.world import World

FENCED = "runners are killed until it can"


class Outage:
    """An installation on a server of the test's own, seen by the test and by a worker."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid
        self.world = World(Database(url))

    def processes(self) -> list[int]:
        """The server, first of all its processes."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True, check=True
        )
        return [self.pid, *map(int, found.stdout.split())]


@contextmanager
def served(directory: Path, connections: int = 100, **settings: Any) -> Iterator[Outage]:
    """A server in this directory, with an installation in its database `postgres`."""
    with postgres(
        embedded_bindir(), directory, max_connections=connections, superuser_reserved_connections=0, **settings
    ) as server:
        migrate(server.url)
        outage = Outage(server.url, server.pid)
        with outage.world.db:
            yield outage


def test_what_ends_while_the_database_restarts_counts(tmp_path: Path, server_directory: Path) -> None:
    """The server is gone for less than a holder waits: the run goes on, ends meanwhile, and is accepted when it is back
    (Promise 1; spec P-03, B-17)."""
    go = tmp_path / "go"
    with ExitStack() as worker:
        with served(server_directory) as first:
            it = worker.enter_context(crew(tmp_path, first.url, "--term-seconds", "60"))
            it.ready()
            (job,) = first.world.submit(new("waits", go=str(go)))
            await_that(lambda: told(tmp_path, "waits"))
        go.touch()
        await_that(lambda: told(tmp_path, "did"))
        with served(server_directory) as second:
            assert await_end(second.world, job) == ["succeeded"]
            (after,) = second.world.submit(new("works"))
            assert await_end(second.world, after) == ["succeeded"]
            row = second.world.job(job)
            assert (row.output, row.epoch, row.losses) == ("1", 1, 0)
            assert FENCED not in it.log


def test_a_worker_opens_its_session_anew_where_the_database_is_another_incarnation(
    tmp_path: Path, server_directory: Path
) -> None:
    """The server comes back on another timeline, as a standby does that took its place: commits may be missing, and
    epochs be granted again. The run of before has no lease any more; the job runs under the new session (spec P-23)."""
    go = tmp_path / "go"
    with ExitStack() as worker:
        with served(server_directory) as first:
            it = worker.enter_context(crew(tmp_path, first.url, "--term-seconds", "60"))
            it.ready()
            (job,) = first.world.submit(new("waits", go=str(go)))
            await_that(lambda: told(tmp_path, "waits"))
            (session,) = first.world.query("SELECT CAST(session_id AS text) AS id FROM testigo.job")
        signal_file = server_directory / "data" / "recovery.signal"
        signal_file.touch()
        with served(server_directory, restore_command="false") as second:
            it.said("another incarnation")
            it.ready(times=2)
            go.touch()
            assert await_end(second.world, job) == ["succeeded"]
            (row,) = second.world.query("SELECT state FROM testigo.session WHERE id = CAST(:id AS uuid)", id=session.id)
            assert (row.state, second.world.job(job).epoch) == ("closed", 2)


def test_a_worker_whose_database_hangs_stops_its_work_and_gives_it_back(tmp_path: Path, server_directory: Path) -> None:
    """Every process of the server is frozen: nothing answers and nothing fails. The handler is killed before anybody
    could call its session dead; when the server goes on, its run is given back, which counts as no failure and no loss,
    and done again (Promise 6; spec P-16, P-19, P-29, B-17)."""
    with served(server_directory) as here, crew(tmp_path, here.url) as it:
        it.ready()
        (job,) = here.world.submit(new("waits", go=str(tmp_path / "go")))
        await_that(lambda: told(tmp_path, "waits"))
        before = it.runners()
        frozen = here.processes()
        try:
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            it.said(FENCED)
            await_that(lambda: not set(before) & set(it.runners()))
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        (tmp_path / "go").touch()
        assert await_end(here.world, job) == ["succeeded"]
        row = here.world.job(job)
        assert (row.failures, row.losses) == (0, 0)
        assert row.epoch > 1


def test_a_database_that_refuses_is_asked_until_it_does_not(tmp_path: Path, server_directory: Path) -> None:
    """Its connections are ended and new ones refused, as with a changed password or at a failover: the worker kills
    its handlers in time, and goes on when it is let in again (spec P-19, P-29)."""
    with served(server_directory) as here, crew(tmp_path, here.url) as it, psycopg.connect(here.url) as hand:
        it.ready()
        rules = server_directory / "data" / "pg_hba.conf"
        allowed = rules.read_text()
        rules.write_text("local all all reject\n")
        hand.execute("SELECT pg_reload_conf()")
        hand.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        it.said(FENCED)
        rules.write_text(allowed)
        hand.execute("SELECT pg_reload_conf()")
        hand.commit()
        (job,) = here.world.submit(new("works"))
        assert await_end(here.world, job) == ["succeeded"]


def test_a_worker_waits_for_connections(tmp_path: Path, server_directory: Path) -> None:
    """Somebody has them all when it starts, and again when its own were ended: it begins, and goes on, as soon as
    there are some (spec P-16)."""
    with served(server_directory, connections=15) as here:
        (job,) = here.world.submit(new("works"))
        here.world.db.close()
        with all_connections(here.url), crew(tmp_path, here.url) as it:
            it.said("is asked again")
        with crew(tmp_path, here.url) as it:
            it.ready()
            assert await_end(here.world, job) == ["succeeded"]
            here.world.db.close()
            with all_connections(here.url):
                it.said(FENCED)
            (after,) = here.world.submit(new("works"))
            assert await_end(here.world, after) == ["succeeded"]


@contextmanager
def all_connections(url: str) -> Iterator[None]:
    """Take every connection that the server has, those of others as well."""
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with ExitStack() as open_ones, psycopg.connect(url, autocommit=True) as hand:
        mine = [hand.info.backend_pid]
        while True:
            try:
                mine.append(open_ones.enter_context(psycopg.connect(url)).info.backend_pid)
            except psycopg.OperationalError:
                if not hand.execute(f"{others} AND NOT pid = ANY (%s)", (mine,)).fetchall():
                    break
        yield


LARGE = """
@app.job("large", queue="q")
def large(ctx: Context, go: str) -> str:
    tell(ctx, "began")
    while not Path(go).exists():
        time.sleep(0.01)
    tell(ctx, "did")
    return os.urandom(100_000).hex()
"""
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000


@pytest.mark.needs_linux
@pytest.mark.needs_mount
def test_results_wait_for_room_on_a_full_disk(tmp_path: Path, server_directory: Path) -> None:
    """What ends while the server has no room to write it is reported again until there is some: each job was run once,
    and its result is accepted (Promise 1; spec P-17)."""
    with small_disk(server_directory) as (url, disk), Database(url) as db:
        world = World(db)
        jobs = world.submit(*(new("large", go=str(tmp_path / "go")) for _ in range(4)))
        with crew(tmp_path, url, "--term-seconds", "60", module=HANDLERS + LARGE) as it:
            await_that(lambda: {each.job_id for each in told(tmp_path, "began")} == set(jobs))
            with pytest.raises(OSError, match="No space"):
                write_without_end(disk / "filler")
            (tmp_path / "go").touch()
            it.said("is asked again")
            await_that(lambda: len(told(tmp_path, "did")) == len(jobs))
            (disk / "filler").unlink()
            assert set(await_end(world, *jobs)) == {"succeeded"}
        assert {world.job(job).epoch for job in jobs} == {1}


def write_without_end(file: Path) -> None:
    """Fill the disk on which this file is."""
    with file.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(8192))


@contextmanager
def small_disk(directory: Path) -> Iterator[tuple[str, Path]]:
    """A server whose database is on a disk of 48 MiB, which only the server and whoever looks by its process see."""
    disk = directory / "disk"
    disk.mkdir()
    owner = directory.stat()
    options = f"size=48m,mode=700,uid={owner.st_uid},gid={owner.st_gid}"
    running = postgres(embedded_bindir(), directory)

    def start() -> Server:
        # A mount is seen by this thread and the processes that it starts.
        if ctypes.CDLL(None).unshare(_CLONE_NEWNS | _CLONE_FS) != 0:
            raise RuntimeError("no namespace of mounts")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=True)
        return running.__enter__()

    with ThreadPoolExecutor(1) as apart:
        server = apart.submit(start).result()
    try:
        with psycopg.connect(server.url, autocommit=True) as hand:
            hand.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
            hand.execute("CREATE DATABASE jobs TABLESPACE small")
        url = database_url(server.url, "jobs")
        migrate(url)
        yield url, Path(f"/proc/{server.pid}/root{disk}")
    finally:
        running.__exit__(None, None, None)
