"""What a killed server leaves behind is recovered from by the next use, with every commit intact (spec P-31)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from testigo.errors import EmbeddedUnusable
from testigo.settings import EMBEDDED
from testigo.store.embedded import EmbeddedServer
from testigo.store.embedded import postmaster as room
from testigo.store.embedded.account import account_for
from testigo.store.embedded.binaries import binaries_for
from tests.store.embedded_user import User, connect, has_postmaster, lives, postmaster, until


def test_commits_outlive_the_servers_sigkill_and_its_users_find_it_at_the_same_url(directory: Path) -> None:
    """A new use starts a killed server again where the other users expect it, in the same process too (spec P-31)."""
    with EmbeddedServer.use(directory) as server, User(directory) as other:
        assert other.url == server.url
        with connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
        os.kill(killed := postmaster(directory), signal.SIGKILL)
        with EmbeddedServer.use(directory) as again, connect(other.url) as connection:
            assert again.url == server.url
            assert postmaster(directory) != killed
            assert connection.execute("SELECT count(*), sum(n) FROM kept").fetchone() == (1000, 500500)
        assert lives(directory)
        other.kill()
    assert not lives(directory)


def test_a_start_waits_until_the_orphans_of_a_killed_server_are_gone(directory: Path) -> None:
    """While a backend of a killed postmaster lives no second one may start; a use says so, or waits (spec P-31)."""
    with EmbeddedServer.use(directory) as server, _orphan(server.url, postmaster(directory)) as backend:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "EMBEDDED", replace(EMBEDDED, start_seconds=0.3))
            with pytest.raises(EmbeddedUnusable, match="an earlier one have not ended"):
                EmbeddedServer.use(directory)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(EmbeddedServer.use, directory)
            os.kill(backend, signal.SIGKILL)
            with waiting.result(), connect(server.url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_start_waits_for_the_orphans_of_a_server_that_was_started_by_hand(directory: Path) -> None:
    """PostgreSQL's own refusals, of a lock file or of shared memory in use, are waited out as well (spec P-31)."""
    with _by_hand(directory) as url, _orphan(url, postmaster(directory)) as backend, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(EmbeddedServer.use, directory)
        until(lambda: "is still in use" in (directory / "server.log").read_text())
        os.kill(backend, signal.SIGKILL)
        with waiting.result() as server, connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_pid_that_the_system_gave_to_another_process_does_not_prevent_a_start(directory: Path) -> None:
    """A killed server's pid, alive again as something else, as after a container's restart, is seen through (P-31)."""
    with EmbeddedServer.use(directory):
        os.kill(killed := postmaster(directory), signal.SIGKILL)
        until(lambda: not lives(directory))
        account = account_for(directory / "data")
        stranger = subprocess.Popen(["sleep", "600"], user=account.user, group=account.group, cwd="/")
        pidfile = directory / "data" / "postmaster.pid"
        pidfile.write_text(pidfile.read_text().replace(str(killed), str(stranger.pid), 1))
        try:
            with EmbeddedServer.use(directory) as server, connect(server.url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()


def test_a_server_that_is_killed_while_it_starts_is_started_again(directory: Path) -> None:
    """A start that somebody's SIGKILL ended, and nothing that PostgreSQL found, is not the end of a use (spec P-31)."""
    with User(directory) as user:
        until(lambda: has_postmaster(directory))
        os.kill(postmaster(directory), signal.SIGKILL)
        assert user.url
    with EmbeddedServer.use(directory) as server, connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_killed_servers_socket_does_not_hold_up_the_next(directory: Path) -> None:
    """The pid beside a socket, though the system knows it, is nobody's once no process of the server lives (P-31)."""
    with EmbeddedServer.use(directory) as server:
        os.kill(postmaster(directory), signal.SIGKILL)
        until(lambda: not lives(directory))
        lock = Path(str(make_url(server.url).query["host"])) / ".s.PGSQL.5432.lock"
        account = account_for(directory / "data")
        stranger = subprocess.Popen(["sleep", "600"], user=account.user, group=account.group, cwd="/")
        lock.write_text(f"{stranger.pid}\n" + lock.read_text().partition("\n")[2])
        try:
            with EmbeddedServer.use(directory), connect(server.url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
            assert "already exists" not in (directory / "server.log").read_text()
        finally:
            stranger.kill()
            stranger.wait()


def test_the_last_user_signals_only_the_process_that_it_saw(directory: Path) -> None:
    """A server's pid is signalled only if it started when the server did (spec P-31)."""
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        with EmbeddedServer.use(directory):
            record = directory / "server.json"
            record.write_text(record.read_text().replace(str(postmaster(directory)), str(stranger.pid)))
        assert stranger.poll() is None
        assert lives(directory)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_half_made_database_is_made_anew(empty: Path) -> None:
    """What an initdb that was killed in the middle left is removed, and the database made (spec P-31)."""
    half = empty / "data.new"
    (half / "base").mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    empty.chmod(0o700)
    with EmbeddedServer.use(empty) as server, connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not half.exists()


def test_a_database_that_was_not_yet_made_is_made_by_the_next(directory: Path) -> None:
    """A process killed between the start and CREATE DATABASE leaves that to the next use (spec P-31)."""
    with EmbeddedServer.use(directory) as server:
        with psycopg.connect(
            server.url.replace("+psycopg://testigo@/testigo", "://postgres@/postgres"), autocommit=True
        ) as connection:
            connection.execute("DROP DATABASE testigo")
        with EmbeddedServer.use(directory), connect(server.url) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("testigo",)


@contextmanager
def _orphan(url: str, server: int) -> Iterator[int]:
    """Kill the postmaster while one of its backends is stopped and so cannot notice; the backend's pid."""
    connection = connect(url)
    backend = connection.info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    try:
        yield backend
    finally:
        with suppress(ProcessLookupError):
            os.kill(backend, signal.SIGKILL)
        connection.close()


@contextmanager
def _by_hand(directory: Path) -> Iterator[str]:
    """The URL of a server on the same data that testigo did not start."""
    data = directory / "data"
    account = account_for(data)
    socket = directory.parent / "s"
    socket.mkdir()
    account.give(socket)
    directory.parent.chmod(0o711)
    directory.chmod(0o711)
    log = (directory.parent / "log").open("wb")
    server = subprocess.Popen(
        [binaries_for(account).program("postgres"), "-D", data, "-k", socket, "-c", "listen_addresses="],
        user=account.user,
        group=account.group,
        stdout=log,
        stderr=log,
    )
    log.close()
    url = f"postgresql+psycopg://testigo@/testigo?host={socket}"
    until(lambda: "ready" in (data / "postmaster.pid").read_text() if (data / "postmaster.pid").exists() else False)
    try:
        yield url
    finally:
        server.kill()
        server.wait()
