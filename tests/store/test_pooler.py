"""A pooler in transaction mode between the engine and its server: three server connections for everybody."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection

from testigo.errors import IsolationUnsupported
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests import services
from tests.invariants import check
from tests.services import create_database, drop_database, pgbouncer
from tests.store.day import live_a_day
from tests.store.tally import Raising, backend_pid, raised, session, tallies

pytestmark = pytest.mark.needs_pgbouncer

POOL = 3
PATIENCE_SECONDS = 60.0


class Pooled(NamedTuple):
    """An empty database: as everybody reaches it, and past the pooler."""

    url: str
    direct: str


@pytest.fixture(
    scope="module", params=["server_url", pytest.param("postgres15_url", marks=pytest.mark.needs_postgres15)]
)
def pooler(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The server of either version, and the pooler before it."""
    server: str = request.getfixturevalue(request.param)
    with pgbouncer(server, pool_size=POOL) as front:
        yield server, front.url


@pytest.fixture
def pooled(pooler: tuple[str, str]) -> Iterator[Pooled]:
    """A database of the test's own behind the pooler."""
    server, front = pooler
    name = f"test_{uuid.uuid4().hex}"
    direct = create_database(server, name)
    yield Pooled(services.database_url(front, name), direct)
    drop_database(server, name)


def test_every_command_works_for_more_threads_than_the_server_has_connections(pooled: Pooled) -> None:
    """Eight threads send every command through three server connections, and leave nothing in these (spec P-12)."""
    migrate(pooled.url)
    with Database(pooled.url, pool_size=8) as db:
        before = _sessions(db)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: live_a_day(db, f"day-{number}"), range(8)))
        after = _sessions(db)
    assert len(after) == POOL
    assert after == before
    with Database(pooled.direct) as db:
        check(db)


def _sessions(db: Database) -> dict[Any, Any]:
    """What each server connection is like: all are held at once, so that none is seen twice."""
    together = threading.Barrier(POOL)

    def look(c: Connection) -> tuple[Any, Any]:
        together.wait(PATIENCE_SECONDS)
        prepared = c.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one()
        together.wait(PATIENCE_SECONDS)
        seen = session(c)
        del seen["settings"]["application_name"]  # the pooler's own: it hands on the name of whoever comes
        return seen.pop("pid"), {"prepared": prepared, **seen}

    with ThreadPoolExecutor(POOL) as threads:
        return dict(threads.map(lambda _: db.run(look), range(POOL)))


@single_statement
def used_in_full(c: Connection) -> tuple[object, ...]:
    """What the engine does on a connection that it takes for direct."""
    driver = c.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    scans = c.exec_driver_sql("SELECT current_setting('enable_seqscan') = 'off'").scalar_one()
    return (scans, driver.prepare_threshold is not None)


@pytest.mark.parametrize("pool_mode", ["transaction", "session"])
def test_a_pooler_is_recognised_by_the_process_that_answers(server_url: str, database_url: str, pool_mode: str) -> None:
    """Only where the process that answers is the one that was promised is a session our own (decision record 0011)."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    with pgbouncer(server_url, pool_mode=pool_mode) as front, Database(services.database_url(front.url, name)) as db:
        assert db.run(used_in_full) == (False, False)
    with Database(database_url) as db:
        assert db.run(used_in_full) == (True, True)


def test_a_command_whose_server_connection_breaks_behind_the_pooler_is_sent_again(pooled: Pooled) -> None:
    """The pooler answers with an error of its own, class 08, and takes effect once all the same (spec P-01, P-03)."""
    migrate(pooled.direct)
    with tallies(pooled.direct) as tally, Database(pooled.url, pool_size=1) as db:

        def broken(c: Connection) -> None:
            tally.hand.execute("SELECT pg_terminate_backend(%s, 60000)", (backend_pid(c),))
            raised(c)

        raising = Raising(broken)
        assert (db.run(raising), tally.value) == (2, 1)
        assert raising.met[0] is None or raising.met[0].startswith(("08", "57P01"))


def test_a_level_above_read_committed_is_refused_behind_a_pooler_too(pooled: Pooled) -> None:
    """The level that the server would begin with is asked for, whoever is in between (spec P-02)."""
    migrate(pooled.direct)
    with psycopg.connect(pooled.direct, autocommit=True) as administrator:
        level = "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'"
        administrator.execute(sql.SQL(level).format(sql.Identifier(administrator.info.dbname)))
    with Database(pooled.url) as db, pytest.raises(IsolationUnsupported):
        db.run(lambda c: None)
