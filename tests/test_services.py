"""The servers that the suite stands on are real, answer, survive being killed, and go away."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests.services import (
    create_database,
    database_url,
    drop_database,
    embedded_bindir,
    pgbouncer,
    postgres,
    postgres15_bindir,
)

SERVER_VERSION = "SELECT current_setting('server_version_num')::int / 10000"


def test_the_shared_server_is_postgresql_18(server_url: str) -> None:
    """The suite runs on the version that comes in the wheel."""
    with psycopg.connect(server_url) as connection:
        assert connection.execute(SERVER_VERSION).fetchone() == (18,)


@pytest.mark.needs_postgres15
def test_the_oldest_version_served_is_at_hand(postgres15_url: str) -> None:
    """PostgreSQL 15 is the oldest version that is promised, so tests can reach one."""
    with psycopg.connect(postgres15_url) as connection:
        assert connection.execute(SERVER_VERSION).fetchone() == (15,)


@pytest.mark.needs_pgbouncer
@pytest.mark.parametrize(
    ("fixture", "version"),
    [("server_url", 18), pytest.param("postgres15_url", 15, marks=pytest.mark.needs_postgres15)],
)
def test_pgbouncer_in_transaction_mode_shares_few_connections(
    request: pytest.FixtureRequest, fixture: str, version: int
) -> None:
    """Behind a transaction pooler more clients than connections work, as for a user who has one (spec P-12)."""
    with pgbouncer(request.getfixturevalue(fixture), pool_size=2) as pooler:
        clients = [psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) for _ in range(5)]
        backends = set()
        for client in clients:
            assert client.execute(SERVER_VERSION).fetchone() == (version,)
            backends.add(client.execute("SELECT pg_backend_pid()").fetchone())
            client.close()
    assert 1 <= len(backends) <= 2


def test_a_killed_server_starts_again_with_what_was_committed(server_directory: Path) -> None:
    """A test may kill PostgreSQL and start it on the same directory: the committed row is there (promise 1)."""
    with postgres(embedded_bindir(), server_directory, fsync="on") as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(server.pid, signal.SIGKILL)
    with postgres(embedded_bindir(), server_directory) as server, psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


@pytest.mark.needs_postgres15
def test_a_server_can_listen_on_tcp_with_settings(server_directory: Path) -> None:
    """A test of the network gets a server on 127.0.0.1, with the PostgreSQL settings that it names."""
    bindir = postgres15_bindir()
    assert bindir is not None
    with (
        postgres(bindir, server_directory, tcp=True, work_mem="7MB") as server,
        psycopg.connect(server.url) as connection,
    ):
        assert connection.info.host == "127.0.0.1"
        assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)


def test_a_server_that_cannot_start_shows_its_log(server_directory: Path) -> None:
    """A server that does not come up is an error with the reason, not a timeout."""
    with (
        pytest.raises(RuntimeError, match="no_such_setting"),
        postgres(embedded_bindir(), server_directory, no_such_setting=1),
    ):
        pass


def test_a_stopped_server_is_gone(server_directory: Path) -> None:
    """Leaving the context ends the process, and its port answers nobody."""
    with postgres(embedded_bindir(), server_directory) as server:
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url)


def test_each_test_gets_an_empty_database(fresh_database: str) -> None:
    """A fresh database has no table of its own; another one does not see what is made in it."""
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert connection.execute(tables).fetchone() == (0,)
        connection.execute("CREATE TABLE mine ()")


def test_a_database_copies_its_template_and_is_dropped_under_its_users(server_url: str, fresh_database: str) -> None:
    """A template's tables are in the copy; dropping the copy ends the connections that are open on it."""
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE inherited AS SELECT 7 AS number")
        template = connection.info.dbname
    copy = create_database(server_url, f"{template}_copy", template)
    assert copy == database_url(server_url, f"{template}_copy")
    with psycopg.connect(copy) as connection:
        assert connection.execute("SELECT number FROM inherited").fetchone() == (7,)
        drop_database(server_url, f"{template}_copy")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
