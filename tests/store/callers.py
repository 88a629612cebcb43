"""Callers with a transaction of their own, one of every kind, and the table in which they and commands write.

The verbs of a `Caller` are carried out as users of its library do it; those of asynchronous ones are
waited for. Every caller is set up unlike the defaults, so that what a command changed would show.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from testigo.store.command import savepoint
from testigo.store.connections import run_within, run_within_async
from testigo.store.sql import Statement

__all__ = ["KINDS", "Caller", "Ledger", "django_connection", "ledger", "sqlalchemy_url", "write"]

Wait = Callable[[Any], Any]
"""Gives back what it is given, or what that becomes when it is awaited."""

_WRITE = Statement(
    """
    INSERT INTO testigo.note (id, note)
    SELECT id, note FROM unnest(CAST(:ids AS uuid[]), CAST(:notes AS text[])) AS given (id, note)
    RETURNING note
    """
)
_SETTINGS = "SELECT name, setting FROM pg_settings ORDER BY name"
_UNUSUAL: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "execution_options": {"theirs": "kept"}}


def write(c: Connection, *notes: str, ids: tuple[str, ...] = ()) -> list[str]:
    """A command as commands are: a savepoint, and a statement with named arrays."""
    with savepoint(c):
        rows = _WRITE.rows(c, ids=list(ids) or [str(uuid.uuid4()) for _ in notes], notes=list(notes))
    return [row.note for row in rows]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table of notes in a schema of its own, and another connection that sees what is committed."""

    schema: str
    other: psycopg.Connection[tuple[Any, ...]]

    def notes(self) -> list[str]:
        """The committed notes, in alphabetical order."""
        select = sql.SQL("SELECT note FROM {} ORDER BY note").format(sql.Identifier(self.schema, "note"))
        return [note for (note,) in self.other.execute(select)]


@contextmanager
def ledger(url: str) -> Iterator[Ledger]:
    """A new, empty ledger on the server, dropped afterwards."""
    schema = f"callers_{uuid.uuid4().hex}"
    table = sql.Identifier(schema, "note")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        other.execute(sql.SQL("CREATE TABLE {} (id uuid PRIMARY KEY, note text NOT NULL)").format(table))
        yield Ledger(schema, other)
        other.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


class Caller:
    """Somebody with a connection and a transaction, which SQLAlchemy opened for them."""

    def __init__(self, connection: Any, wait: Wait) -> None:
        self.connection = connection
        self.wait = wait

    @property
    def is_async(self) -> bool:
        """Whether the connection is asynchronous."""
        return self.wait is not _at_once

    def run(self, command: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a command within the transaction, in the right colour."""
        run = run_within_async if self.is_async else run_within
        return self.wait(run(self.connection, command, *args, **kwargs))

    def write(self, ledger: Ledger, note: str) -> None:
        """Write a note as the caller's own."""
        self.execute(f"INSERT INTO {ledger.schema}.note VALUES ('{uuid.uuid4()}', '{note}')")

    def execute(self, statement: str) -> list[Any]:
        """Run a statement, and return its rows if it has any."""
        result = self.wait(self.connection.execute(text(statement)))
        return [tuple(row) for row in result] if result.returns_rows else []

    def savepoint(self) -> Callable[[], object]:
        """Begin a savepoint, and return what rolls back to it."""
        nested = self.wait(self.connection.begin_nested())
        return lambda: self.wait(nested.rollback())

    def commit(self) -> None:
        """Commit the transaction."""
        self.wait(self.connection.commit())

    def rollback(self) -> None:
        """Roll the transaction back."""
        self.wait(self.connection.rollback())

    def driver(self) -> Any:
        """The driver's own connection."""
        return self._core().connection.driver_connection

    def settings(self) -> object:
        """All that a command must leave as it was: in Python, and in the server's session."""
        core = self._core()
        options = dict(core.get_execution_options())
        dbapi: Any = core.connection.dbapi_connection
        return (
            options,
            core.in_nested_transaction(),
            dbapi.autocommit,
            vars_of(self.driver()),
            self.execute(_SETTINGS),
        )

    def _core(self) -> Connection:
        known = isinstance(self.connection, Connection | AsyncConnection)
        connection = self.connection if known else self.wait(self.connection.connection())
        return getattr(connection, "sync_connection", connection)  # type: ignore[no-any-return]


def vars_of(driver: Any) -> object:
    """What can be set on a driver's connection, where it is psycopg's."""
    if not isinstance(driver, psycopg.Connection | psycopg.AsyncConnection):
        return None
    modes = (driver.autocommit, driver.isolation_level, driver.read_only, driver.deferrable, driver.prepare_threshold)
    return (
        modes,
        driver.row_factory,
        driver.cursor_factory,
        len(driver._notice_handlers),
        driver.info.transaction_status,
    )


class PsycopgCaller(Caller):
    """Somebody with a psycopg connection."""

    def execute(self, statement: str) -> list[Any]:
        cursor = self.wait(self.connection.execute(statement))
        return list(self.wait(cursor.fetchall())) if cursor.description else []

    def savepoint(self) -> Callable[[], object]:
        block = self.connection.transaction()
        enter, leave = ("__aenter__", "__aexit__") if self.is_async else ("__enter__", "__exit__")
        self.wait(getattr(block, enter)())
        return lambda: self.wait(getattr(block, leave)(*_rollback_of(block)))

    def driver(self) -> Any:
        return self.connection

    def settings(self) -> object:
        return vars_of(self.connection), self.execute(_SETTINGS)


class BlockCaller(PsycopgCaller):
    """Somebody with a psycopg connection in autocommit mode, inside a transaction block."""

    def __init__(self, connection: Any, wait: Wait) -> None:
        super().__init__(connection, wait)
        self.block = connection.transaction()
        self.block.__enter__()

    def commit(self) -> None:
        self.block.__exit__(None, None, None)

    def rollback(self) -> None:
        self.block.__exit__(*_rollback_of(self.block))


class DjangoCaller(Caller):
    """Somebody with Django's connection, inside an atomic block."""

    def __init__(self, connection: Any, wait: Wait) -> None:
        super().__init__(connection, wait)
        self.block = self._atomic()

    def execute(self, statement: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def savepoint(self) -> Callable[[], object]:
        return partial(self._roll_back, self._atomic())

    def commit(self) -> None:
        self.block.__exit__(None, None, None)

    def rollback(self) -> None:
        self._roll_back(self.block)

    def driver(self) -> Any:
        return self.connection.connection

    def settings(self) -> object:
        connection = self.connection
        flags = (connection.autocommit, connection.needs_rollback, list(connection.savepoint_ids))
        return flags, vars_of(self.driver()), self.execute(_SETTINGS)

    def _atomic(self) -> Any:
        from django.db.transaction import atomic

        block = atomic()
        block.__enter__()
        return block

    def _roll_back(self, block: Any) -> None:
        self.connection.set_rollback(True)
        block.__exit__(None, None, None)


def sqlalchemy_url(url: str, driver: str) -> str:
    """The server's URL for SQLAlchemy on a driver."""
    return url.replace("postgresql://", f"postgresql+{driver}://")


def django_connection(url: str) -> Any:
    """Django's `connection`, with Django configured for the server when it is first asked for."""
    import django
    from django.conf import settings

    if not settings.configured:
        at = conninfo_to_dict(url)
        place = {"NAME": at["dbname"], "USER": at["user"], "HOST": at["host"], "PORT": at["port"]}
        settings.configure(
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **place}},
            USE_TZ=False,
            TIME_ZONE="America/Chicago",
        )
        django.setup()
    from django.db import connection

    return connection


@contextmanager
def _sqlalchemy(of_engine: Callable[[Any], Any], url: str) -> Iterator[Caller]:
    engine = create_engine(sqlalchemy_url(url, "psycopg"), **_UNUSUAL)
    with of_engine(engine) as connection:
        yield Caller(connection, _at_once)
    engine.dispose()


@contextmanager
def _sqlalchemy_async(of_engine: Callable[[Any], Any], driver: str, url: str) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        wait = partial(_awaited, runner)
        engine = create_async_engine(sqlalchemy_url(url, driver), **_UNUSUAL)
        connection = of_engine(engine)
        if hasattr(connection, "start"):
            wait(connection.start())
        yield Caller(connection, wait)
        wait(connection.close())
        wait(engine.dispose())


@contextmanager
def _psycopg(kind: Callable[[Any, Wait], Caller], autocommit: bool, url: str) -> Iterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row, autocommit=autocommit, prepare_threshold=3) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        yield kind(connection, _at_once)
        connection.close()


@contextmanager
def _psycopg_async(url: str) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        wait = partial(_awaited, runner)
        connection = wait(psycopg.AsyncConnection.connect(url, row_factory=dict_row))
        wait(connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ))
        yield PsycopgCaller(connection, wait)
        wait(connection.close())


@contextmanager
def _django(url: str) -> Iterator[Caller]:
    connection = django_connection(url)
    caller = DjangoCaller(connection, _at_once)
    yield caller
    if connection.in_atomic_block:
        caller.rollback()
    connection.close()


KINDS: dict[str, Callable[[str], AbstractContextManager[Caller]]] = {
    "Connection": partial(_sqlalchemy, lambda engine: engine.connect()),
    "Connection in a with block": partial(_sqlalchemy, lambda engine: engine.begin()),
    "Session": partial(_sqlalchemy, Session),
    "scoped_session": partial(_sqlalchemy, lambda engine: closing(scoped_session(sessionmaker(engine)))),
    "psycopg": partial(_psycopg, PsycopgCaller, False),
    "psycopg in a block": partial(_psycopg, BlockCaller, True),
    "Django": _django,
    "AsyncConnection": partial(_sqlalchemy_async, lambda engine: engine.connect(), "psycopg"),
    "AsyncConnection on asyncpg": partial(_sqlalchemy_async, lambda engine: engine.connect(), "asyncpg"),
    "AsyncSession": partial(_sqlalchemy_async, AsyncSession, "psycopg"),
    "AsyncSession on asyncpg": partial(_sqlalchemy_async, AsyncSession, "asyncpg"),
    "async_scoped_session": partial(
        _sqlalchemy_async, lambda engine: async_scoped_session(async_sessionmaker(engine), lambda: 1), "psycopg"
    ),
    "asynchronous psycopg": _psycopg_async,
}


def _at_once(value: Any) -> Any:
    return value


def _awaited(runner: asyncio.Runner, value: Any) -> Any:
    async def of(awaitable: Awaitable[Any]) -> Any:
        return await awaitable

    return runner.run(of(value)) if isawaitable(value) else value


def _rollback_of(block: Any) -> tuple[type[BaseException], BaseException, None]:
    return psycopg.Rollback, psycopg.Rollback(block), None
