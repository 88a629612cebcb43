"""Callers with a transaction of their own, one of every kind, and the table in which they and commands write.

Each kind is a context manager that yields a `Caller`: the same verbs for all of them, carried out
as its library's users do. Every one is set up unlike the defaults, so that what sticks shows.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
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

from testigo.store.connections import run_within, run_within_async
from testigo.store.sql import Statement

__all__ = ["KINDS", "Caller", "Ledger", "django_connection", "ledger", "write"]

_WRITE = Statement(
    """
    INSERT INTO testigo.note (id, note)
    SELECT id, note FROM unnest(CAST(:ids AS uuid[]), CAST(:notes AS text[])) AS given (id, note)
    RETURNING note
    """
)
_SETTINGS = "SELECT name || '=' || setting FROM pg_settings ORDER BY name"
_OPTIONS = {"isolation_level": "REPEATABLE READ", "execution_options": {"theirs": "kept"}}


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a connection; `settings` is all that must be afterwards as it was before."""

    connection: Any
    run: Callable[..., Any]
    execute: Callable[[str], Any]
    savepoint: Callable[[], Callable[[], Any]]
    """Begin one the way the library does, and return what rolls back to it."""
    commit: Callable[[], Any]
    rollback: Callable[[], Any]
    close: Callable[[], Any]
    settings: Callable[[], Any]

    def write(self, ledger: Ledger, note: str) -> None:
        """Write a note in the caller's own transaction."""
        self.execute(f"INSERT INTO {ledger.schema}.note VALUES ('{uuid.uuid4()}', '{note}')")


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table of notes in a schema of its own, seen from another connection."""

    schema: str
    other: psycopg.Connection[tuple[Any, ...]]

    def notes(self) -> list[str]:
        """What is committed, in alphabetical order."""
        return [note for (note,) in self.other.execute(f"SELECT note FROM {self.schema}.note ORDER BY note")]  # type: ignore[arg-type]


@contextmanager
def ledger(url: str) -> Iterator[Ledger]:
    """A new, empty ledger on the server, dropped afterwards."""
    schema = f"callers_{uuid.uuid4().hex}"
    name = sql.Identifier(schema)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        other.execute(sql.SQL("CREATE TABLE {}.note (id uuid PRIMARY KEY, note text NOT NULL)").format(name))
        yield Ledger(schema, other)
        other.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))


def write(c: Connection, *notes: str, ids: tuple[str, ...] = ()) -> list[str]:
    """A command as they are: a savepoint, a statement written as SQL, arrays by name."""
    with c.begin_nested():
        rows = _WRITE.rows(c, ids=list(ids or (str(uuid.uuid4()) for _ in notes)), notes=list(notes))
    return [row.note for row in rows]


@contextmanager
def connection(url: str) -> Iterator[Caller]:
    """A SQLAlchemy Connection that begins its transaction by itself."""
    engine = create_engine(_dialect(url, "psycopg"), **_OPTIONS)
    with engine.connect() as c:
        yield _of_connection(c)
    engine.dispose()


@contextmanager
def begun_connection(url: str) -> Iterator[Caller]:
    """A SQLAlchemy Connection in a transaction that was begun explicitly."""
    engine = create_engine(_dialect(url, "psycopg"), **_OPTIONS)
    with engine.connect() as c:
        c.begin()
        yield _of_connection(c)
    engine.dispose()


@contextmanager
def session(url: str) -> Iterator[Caller]:
    """A SQLAlchemy Session."""
    engine = create_engine(_dialect(url, "psycopg"), **_OPTIONS)
    with Session(engine) as s:
        yield _of_session(s, s)
    engine.dispose()


@contextmanager
def scoped(url: str) -> Iterator[Caller]:
    """A scoped_session, as web frameworks have it."""
    engine = create_engine(_dialect(url, "psycopg"), **_OPTIONS)
    registry = scoped_session(sessionmaker(engine))
    yield _of_session(registry(), registry)
    registry.remove()
    engine.dispose()


@contextmanager
def psycopg_connection(url: str) -> Iterator[Caller]:
    """A psycopg connection as it comes."""
    with psycopg.connect(url, row_factory=dict_row) as c:
        c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        yield _of_psycopg(c, c.commit, c.rollback)


@contextmanager
def psycopg_block(url: str) -> Iterator[Caller]:
    """A psycopg connection in autocommit mode, in a transaction block."""
    with psycopg.connect(url, row_factory=dict_row, autocommit=True) as c:
        block = c.transaction()
        block.__enter__()
        yield _of_psycopg(c, lambda: block.__exit__(None, None, None), lambda: _end_with_error(block))


@contextmanager
def django(url: str) -> Iterator[Caller]:
    """Django's `connection`, in an atomic block."""
    c = django_connection(url)
    from django.db import transaction  # type: ignore[import-untyped]

    block = transaction.atomic()
    block.__enter__()

    def execute(statement: str) -> None:
        with c.cursor() as cursor:
            cursor.execute(statement)

    def savepoint() -> Callable[[], None]:
        inner = transaction.atomic()
        inner.__enter__()
        return lambda: _end_with_error(inner)

    def settings() -> object:
        with c.cursor() as cursor:
            cursor.execute(_SETTINGS)
            return (_psycopg_settings(c.connection), c.autocommit, c.needs_rollback, cursor.fetchall())

    try:
        yield Caller(
            c,
            lambda *args, **kwargs: run_within(c, *args, **kwargs),
            execute,
            savepoint,
            lambda: block.__exit__(None, None, None),
            lambda: _end_with_error(block),
            c.close,
            settings,
        )
    finally:
        c.close()
        c.in_atomic_block = False


@contextmanager
def async_connection(url: str, driver: str = "psycopg") -> Iterator[Caller]:
    """A SQLAlchemy AsyncConnection."""
    with _runner(url, driver) as (runner, stack, engine):
        c: AsyncConnection = runner.run(stack.enter_async_context(engine.connect()))
        yield Caller(
            c,
            _waiting(runner, run_within_async, c),
            lambda statement: runner.run(_discarding(c.execute(text(statement)))),
            lambda: _waiting(runner, runner.run(_begun(c.begin_nested())).rollback),
            _waiting(runner, c.commit),
            _waiting(runner, c.rollback),
            _waiting(runner, c.close),
            lambda: runner.run(c.run_sync(_sqlalchemy_settings)),
        )


@contextmanager
def async_session(url: str, driver: str = "psycopg") -> Iterator[Caller]:
    """A SQLAlchemy AsyncSession."""
    with _runner(url, driver) as (runner, stack, engine):
        s = runner.run(stack.enter_async_context(AsyncSession(engine)))
        yield _of_async_session(runner, s, s)


@contextmanager
def async_scoped(url: str, driver: str = "psycopg") -> Iterator[Caller]:
    """An async_scoped_session."""
    with _runner(url, driver) as (runner, stack, engine):
        registry = async_scoped_session(async_sessionmaker(engine), lambda: 1)
        stack.push_async_callback(registry.remove)
        yield _of_async_session(runner, registry(), registry)


@contextmanager
def async_psycopg(url: str) -> Iterator[Caller]:
    """An asynchronous psycopg connection."""
    with asyncio.Runner() as runner:
        c = runner.run(psycopg.AsyncConnection.connect(url, row_factory=dict_row))
        runner.run(c.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ))

        async def settings() -> object:
            cursor = await c.execute(_SETTINGS)
            return (_psycopg_settings(c), await cursor.fetchall())

        def savepoint() -> Callable[[], None]:
            block = c.transaction()
            runner.run(block.__aenter__())
            return lambda: runner.run(block.__aexit__(psycopg.Rollback, psycopg.Rollback(block), None)) and None

        try:
            yield Caller(
                c,
                _waiting(runner, run_within_async, c),
                lambda statement: runner.run(_discarding(c.execute(statement))),  # type: ignore[arg-type]
                savepoint,
                _waiting(runner, c.commit),
                _waiting(runner, c.rollback),
                _waiting(runner, c.close),
                _waiting(runner, settings),
            )
        finally:
            runner.run(c.close())


def _asyncpg(kind: Callable[..., AbstractContextManager[Caller]]) -> Callable[[str], AbstractContextManager[Caller]]:
    return lambda url: kind(url, "asyncpg")


KINDS: dict[str, Callable[[str], AbstractContextManager[Caller]]] = {
    "Connection": connection,
    "Connection, begun": begun_connection,
    "Session": session,
    "scoped_session": scoped,
    "psycopg": psycopg_connection,
    "psycopg, in a block": psycopg_block,
    "Django": django,
    "AsyncConnection": async_connection,
    "AsyncConnection, asyncpg": _asyncpg(async_connection),
    "AsyncSession": async_session,
    "AsyncSession, asyncpg": _asyncpg(async_session),
    "async_scoped_session": async_scoped,
    "psycopg, asynchronous": async_psycopg,
}
