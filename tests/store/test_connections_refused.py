"""A connection on which a command cannot run safely is refused by name, with a remedy, and with nothing sent."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from testigo.errors import ConnectionUnsupported
from testigo.store.connections import run_within, run_within_async
from tests.store.callers import KINDS, Caller, Ledger, django_connection, ledger, sqlalchemy_url, write


@pytest.fixture(name="ledger")
def fixture_ledger(server_url: str) -> Iterator[Ledger]:
    """A table for notes."""
    with ledger(server_url) as made:
        yield made


@pytest.fixture(params=KINDS)
def caller(request: pytest.FixtureRequest, server_url: str, ledger: Ledger) -> Iterator[Caller]:
    """A caller of each kind, who is gone before the ledger is dropped."""
    with KINDS[request.param](server_url) as made:
        yield made


@pytest.fixture
def engine(server_url: str) -> Iterator[Engine]:
    """A caller's engine."""
    made = create_engine(sqlalchemy_url(server_url, "psycopg"))
    yield made
    made.dispose()


def never(_: Connection) -> None:
    """A command that must not be reached."""
    raise AssertionError("the command ran")


def seven(c: Connection) -> Any:
    """A command that may run."""
    return c.scalar(text("SELECT 7"))


@contextmanager
def refusal(*words: str) -> Iterator[None]:
    """Whoever does this is refused, with these words in the message or the remedy."""
    with pytest.raises(ConnectionUnsupported) as raised:
        yield
    assert raised.value.field == "connection"
    for word in words:
        assert word in str(raised.value)


def test_the_wrong_colour_is_told_the_other_function(caller: Caller) -> None:
    """A synchronous connection is sent to `run_within`, an asynchronous one to `run_within_async`."""
    caller.execute("SELECT 1")
    before = caller.settings()
    if caller.is_async:
        with refusal("is asynchronous", "Await run_within_async"):
            run_within(caller.connection, never)
    else:
        with refusal("is synchronous", "Call run_within"):
            asyncio.run(run_within_async(caller.connection, never))
    assert caller.settings() == before


def test_a_transaction_that_has_failed_is_refused_until_it_is_taken_back(caller: Caller, ledger: Ledger) -> None:
    """Where every statement would fail the command is not begun; after the caller's rollback it runs."""
    caller.write(ledger, "theirs")
    back = caller.savepoint()
    with pytest.raises(Exception, match="division by zero"):
        caller.execute("SELECT 1 / 0")
    with refusal("transaction has failed", "Roll it back"):
        caller.run(never)
    back()
    caller.run(write, "ours", schema=ledger.schema)
    caller.commit()
    assert ledger.notes() == ["ours", "theirs"]


def test_a_connection_that_the_driver_has_closed_is_refused(caller: Caller, ledger: Ledger) -> None:
    """A connection that is gone is seen before a command is sent into it."""
    caller.write(ledger, "theirs")
    caller.wait(caller.driver().close())
    with refusal("It is closed", "open"):
        caller.run(never)
    with suppress(DBAPIError, psycopg.Error):
        caller.rollback()  # which tells SQLAlchemy, who has not noticed


def test_a_sqlalchemy_connection_that_is_closed_is_refused(engine: Engine) -> None:
    """A Connection is refused once it has gone back to its pool."""
    with engine.connect() as c:
        pass
    with refusal("It is closed"):
        run_within(c, never)


def test_an_async_connection_that_is_not_open_is_refused(server_url: str) -> None:
    """An AsyncConnection is refused before it is opened, and when it is closed."""

    async def main() -> None:
        engine = create_async_engine(sqlalchemy_url(server_url, "asyncpg"))
        c = engine.connect()
        with refusal("It is closed"):
            await run_within_async(c, never)
        await c.start()
        await c.close()
        with refusal("It is closed"):
            await run_within_async(c, never)
        await engine.dispose()

    asyncio.run(main())


def test_what_sqlalchemy_would_not_do_is_not_done(engine: Engine) -> None:
    """A transaction that ended inside its block, and a session that may not begin one, stay as they are."""
    with engine.connect() as c, c.begin() as transaction:
        transaction.rollback()
        with refusal("closed transaction"):
            run_within(c, never)
        assert not c.in_transaction()
    with Session(engine, autobegin=False) as session, refusal("call session.begin()"):
        run_within(session, never)
    with Session(engine, close_resets_only=False) as session:
        pass
    with refusal("closed"):
        run_within(session, never)
    with Session() as session, refusal("bind"):
        run_within(session, never)


def test_a_synchronous_session_of_an_asynchronous_engine_needs_its_run_sync(server_url: str) -> None:
    """Outside `AsyncSession.run_sync` it cannot wait for anything, so it is refused; inside it serves."""

    async def main() -> None:
        engine = create_async_engine(sqlalchemy_url(server_url, "asyncpg"))
        async with AsyncSession(engine) as session:
            with refusal("Its engine is asynchronous", "run_sync"):
                run_within(session.sync_session, never)
        async with AsyncSession(engine) as session:
            assert await session.run_sync(run_within, seven) == 7
        await engine.dispose()

    asyncio.run(main())


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_autocommit_of_sqlalchemy_is_refused(server_url: str, driver: str) -> None:
    """In AUTOCOMMIT there is no transaction to be part of, set for the engine or for the connection."""

    async def main() -> None:
        url = sqlalchemy_url(server_url, driver)
        engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as c:
            with refusal("AUTOCOMMIT"):
                await run_within_async(c, never)
        await engine.dispose()
        engine = create_async_engine(url)
        async with engine.connect() as c:
            await c.execution_options(isolation_level="AUTOCOMMIT")
            with refusal("AUTOCOMMIT"):
                await run_within_async(c, never)
        await engine.dispose()

    asyncio.run(main())


def test_a_busy_psycopg_connection_is_refused(server_url: str) -> None:
    """Inside a pipeline answers come too late, inside a COPY there is no place for a statement."""
    with psycopg.connect(server_url) as c:
        with c.pipeline(), refusal("busy with a pipeline"):
            run_within(c, never)
        with c.cursor() as cursor, cursor.copy("COPY (SELECT generate_series(1, 9)) TO STDOUT") as copy:
            assert copy.read()
            with refusal("a COPY", "Finish"):
                run_within(c, never)
            assert list(copy)
        assert run_within(c, seven) == 7


def test_other_databases_are_refused_by_name(tmp_path: Any) -> None:
    """SQLite is not the authority, through whichever library it is reached."""
    engine = create_engine(f"sqlite:///{tmp_path}/it.db")
    with engine.connect() as c, Session(engine) as session:
        for connection in (c, session):
            with refusal("sqlite+pysqlite", "PostgreSQL"):
                run_within(connection, never)
        assert not c.in_transaction()
    engine.dispose()
    plain = sqlite3.connect(":memory:")
    with refusal("sqlite3.Connection", "Pass a SQLAlchemy Session"):
        run_within(plain, never)
    plain.close()


@pytest.mark.parametrize("driver", ["psycopg2", "pg8000"])
def test_other_drivers_are_refused_before_they_connect(monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    """A session on another driver is refused by the driver's name; it does not even open a connection."""
    module = ModuleType(driver)  # as much of it as SQLAlchemy looks at before it connects
    module.__dict__.update(__version__="2.9.9", paramstyle="pyformat", extras=ModuleType("extras"))
    monkeypatch.setitem(sys.modules, driver, module)

    def connect() -> None:
        raise AssertionError("it connected")

    engine = create_engine(f"postgresql+{driver}://", creator=connect)
    with Session(engine) as session, refusal(f"postgresql+{driver}", "postgresql+psycopg://"):
        run_within(session, never)


@pytest.mark.parametrize("run", [run_within, lambda *args: asyncio.run(run_within_async(*args))])
def test_a_psycopg2_connection_is_refused_by_name(run: Callable[..., Any]) -> None:
    """A connection of psycopg2's own class is sent to psycopg 3."""
    of_psycopg2 = type("connection", (), {"__module__": "psycopg2.extensions"})
    with refusal("psycopg2.extensions.connection", "Connect with psycopg 3"):
        run(of_psycopg2(), never)


def test_a_plain_asyncpg_connection_is_refused_by_name(server_url: str) -> None:
    """asyncpg is served through SQLAlchemy only."""

    async def main() -> None:
        c = await asyncpg.connect(server_url)
        with refusal("asyncpg.connection.Connection", "AsyncConnection on asyncpg"):
            await run_within_async(c, never)
        await c.close()

    asyncio.run(main())


@pytest.mark.parametrize("connection", [None, "postgresql://", object(), create_engine("sqlite://")])
def test_what_is_no_connection_is_refused(connection: object) -> None:
    """Neither a URL nor an engine nor nothing at all is taken for a connection."""
    with refusal("not a connection", "Pass a SQLAlchemy Session"):
        run_within(connection, never)
    with refusal("not a connection", "Pass a SQLAlchemy Session"):
        asyncio.run(run_within_async(connection, never))


def test_django_outside_a_transaction_is_refused(server_url: str) -> None:
    """Without atomic() each of Django's statements is a transaction of its own, so there is none to join."""
    connection = django_connection(server_url)
    with refusal("no transaction", "transaction.atomic()"):
        run_within(connection, never)
    assert connection.connection is None, "it was opened"


def test_django_that_must_roll_back_is_refused(server_url: str) -> None:
    """Django marks a block whose inner part failed; nothing may be added to what will be rolled back."""
    connection = django_connection(server_url)
    from django.db import transaction

    with transaction.atomic():
        connection.set_rollback(True)
        with refusal("transaction has failed"):
            run_within(connection, never)
    with transaction.atomic():
        connection.close()
        with refusal("transaction has failed"):
            run_within(connection, never)


def test_django_on_another_database_or_driver_is_refused(server_url: str) -> None:
    """Django's SQLite, its connection on psycopg2, and its other proxies are refused by name."""
    django_connection(server_url)
    from django.core.cache import cache
    from django.db import connections
    from django.db.backends.postgresql.base import DatabaseWrapper
    from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite

    settings = connections["default"].settings_dict
    on_psycopg2 = type("DatabaseWrapper", (DatabaseWrapper,), {"Database": ModuleType("psycopg2")})
    with refusal("Django's connection to sqlite"):
        run_within(Sqlite(settings), never)
    with refusal("on psycopg2", "psycopg 3"):
        run_within(on_psycopg2(settings), never)
    with refusal("Django's connection to None"):
        run_within(cache, never)


def test_nothing_is_imported_that_the_caller_has_not_imported() -> None:
    """Kinds are known by name: a process without Django or asyncpg stays without them."""
    program = """
import sys
from testigo.errors import ConnectionUnsupported
from testigo.store.connections import run_within
try:
    run_within(object(), print)
except ConnectionUnsupported:
    print(*sorted({"asyncpg", "django", "psycopg2"} & set(sys.modules)))
"""
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == ""
