"""The door while its server crashes, restarts, or is not there yet."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import Connection

from testigo.settings import STORE
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.schema import migrate
from testigo.store.sql import Statement
from tests.services import Restartable, create_database, server_directory
from tests.store.day import until
from tests.store.tally import Raising, backend_pid, raised, tallies

PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Restartable]:
    """The server, running or not."""
    with server_directory() as directory:
        restartable = Restartable(directory)
        yield restartable
        restartable.stop()


@pytest.fixture
def away_db(server: Restartable, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An installation on it, with a table of tallies, whose door tries often enough for a server to start."""
    store = replace(STORE, retry_first_seconds=0.001, retry_cap_seconds=0.05, tries=1000)
    monkeypatch.setattr("testigo.store.database.STORE", store)
    url = create_database(server.start(), request.node.name)
    migrate(url)
    with tallies(url):
        pass
    with Database(url, pool_size=8) as db:
        yield db


def test_a_command_outlives_a_crash_of_the_server(server: Restartable, away_db: Database) -> None:
    """One process is killed, so the server ends all others and recovers; the command waits for it (spec P-01, P-03)."""

    def crash(c: Connection) -> None:
        pid = backend_pid(c)
        with psycopg.connect(server.url) as other:
            os.kill(other.info.backend_pid, signal.SIGKILL)
        until(lambda: not _lives(pid), "the end of every process of the server's")
        raised(c)

    assert away_db.run(Raising(crash)) == 2
    assert away_db.run(raised) == 2


def test_one_stale_connection_tells_of_all_others(server: Restartable, away_db: Database) -> None:
    """After a restart a full pool costs one send and not one for each connection, on the hot paths too (spec P-03)."""
    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: away_db.run(lambda c: together.wait(PATIENCE_SECONDS)), range(8)))
    server.stop()
    server.start()
    sent: list[int] = []

    @single_statement
    def command(c: Connection) -> int:
        sent.append(1)
        return int(Statement("UPDATE tally SET n = n + 1 WHERE id = 0 RETURNING n").fetch(c, {})[0][0])

    assert (away_db.run(command), len(sent)) == (1, 2)


def test_a_command_waits_for_a_server_that_is_not_there_yet(
    server: Restartable, away_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection is passing: the command takes effect when the server has come (spec P-03)."""
    refused = threading.Event()
    monkeypatch.setattr("testigo.store.database.log.info", lambda *_: refused.set())
    server.stop()
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(away_db.run, raised)
        assert refused.wait(PATIENCE_SECONDS)
        server.start()
        assert sent.result(PATIENCE_SECONDS) == 1


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
