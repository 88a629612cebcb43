"""A psycopg connection that SQLAlchemy is shown is not initialised, ended, changed or replaced by it.

The caller has a marker in an open transaction; after each moment at which an engine made over the
connection would have rolled it back, the marker is still there, and still not committed.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from sqlalchemy import Connection, Engine, Pool, create_engine, event, text
from sqlalchemy.exc import DBAPIError, StatementError

from testigo.store.borrowed import borrow, borrow_async
from testigo.store.connections import run_within, run_within_async
from tests.store.callers import Ledger, ledger, sqlalchemy_url, write


@pytest.fixture(name="ledger")
def fixture_ledger(server_url: str) -> Iterator[Ledger]:
    """A table for notes."""
    with ledger(server_url) as made:
        yield made


class Stopped(BaseException):
    """An interrupt of a test's own."""


def use_and_drop(c: Connection) -> None:
    """Leave a Connection to the garbage collector in the middle of its transaction."""
    c.execute(text("SELECT 1"))


def close(c: Connection) -> None:
    """Close it, as `with engine.connect()` would."""
    with c:
        c.execute(text("SELECT 1"))


def close_unused(c: Connection) -> None:
    """Close it before it has begun anything."""
    c.close()


def commit(c: Connection) -> None:
    """Commit what SQLAlchemy takes for its own transaction."""
    c.execute(text("SELECT 1"))
    c.commit()


def roll_back(c: Connection) -> None:
    """Roll it back."""
    c.execute(text("SELECT 1"))
    c.rollback()


def begin_and_fail(c: Connection) -> None:
    """Leave a `begin()` block by an exception."""
    with suppress(Stopped), c.begin():
        c.execute(text("SELECT 1"))
        raise Stopped


def invalidate(c: Connection) -> None:
    """Declare it lost, as SQLAlchemy does after an interrupt; it must not be replaced by another."""
    c.execute(text("SELECT 1"))
    assert c.connection.is_valid
    c.invalidate()
    c.rollback()
    with pytest.raises(StatementError, match="no other is opened"):
        c.execute(text("SELECT 1"))


def dispose(c: Connection) -> None:
    """Dispose of the engine, as tests and forking servers do."""
    c.execute(text("SELECT 1"))
    c.engine.dispose()


def read_isolation(c: Connection) -> None:
    """Ask for the isolation level, for which SQLAlchemy rolls back what it takes for an idle connection."""
    assert c.get_isolation_level() == "READ COMMITTED"


def divide(c: Connection) -> None:
    """Fail."""
    c.execute(text("SELECT 1 / 0"))


MOMENTS = [use_and_drop, close, close_unused, commit, roll_back, begin_and_fail, invalidate, dispose, read_isolation]


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_callers_transaction_outlives_each_moment(
    server_url: str, ledger: Ledger, moment: Callable[[Connection], None]
) -> None:
    """Nothing that happens to the Connection happens to the caller's transaction."""
    with psycopg.connect(server_url) as caller:
        _mark(caller, ledger)
        moment(borrow(caller, ledger.schema))
        gc.collect()
        assert caller.execute(f"SELECT note FROM {ledger.schema}.note").fetchall() == [("marker",)]
        assert ledger.notes() == []
        caller.commit()
    assert ledger.notes() == ["marker"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_same_of_an_asynchronous_caller(
    server_url: str, ledger: Ledger, moment: Callable[[Connection], None]
) -> None:
    """Nothing that happens to the Connection happens to the caller's transaction, which is asynchronous."""

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(server_url) as caller:
            await caller.execute(f"INSERT INTO {ledger.schema}.note VALUES (gen_random_uuid(), 'marker')")
            await borrow_async(caller, ledger.schema).run_sync(moment)
            gc.collect()
            cursor = await caller.execute(f"SELECT note FROM {ledger.schema}.note")
            assert await cursor.fetchall() == [("marker",)]
            assert ledger.notes() == []
            await caller.commit()

    asyncio.run(main())
    assert ledger.notes() == ["marker"]


def test_an_exception_that_keeps_the_connection_alive_ends_nothing(server_url: str, ledger: Ledger) -> None:
    """A Connection held by a traceback, and collected with it later, leaves the caller's transaction alone."""
    with psycopg.connect(server_url) as caller:
        _mark(caller, ledger)
        with pytest.raises(DBAPIError) as raised:
            run_within(caller, divide, schema=ledger.schema)
        run_within(caller, write, "ours", schema=ledger.schema)
        del raised
        gc.collect()
        caller.commit()
    assert ledger.notes() == ["marker", "ours"]


def test_an_engine_made_over_the_connection_would_have_ended_it(server_url: str, ledger: Ledger) -> None:
    """What all of this is for: the obvious way rolls the caller back without a word."""
    with psycopg.connect(server_url) as caller:
        _mark(caller, ledger)
        engine = create_engine(sqlalchemy_url(server_url, "psycopg"), creator=lambda: caller)
        with engine.connect():
            pass
        assert caller.execute(f"SELECT note FROM {ledger.schema}.note").fetchall() == []
        caller.commit()
        engine.dispose()
    assert ledger.notes() == []


def test_nothing_is_sent_but_the_savepoint_and_the_statement(server_url: str, ledger: Ledger) -> None:
    """No dialect looks at the server first: a command of one statement takes three answers from it."""

    class Counting(psycopg.Connection[Any]):
        waits = 0

        def wait(self, *args: Any, **kwargs: Any) -> Any:
            self.waits += 1
            return super().wait(*args, **kwargs)

    with Counting.connect(server_url) as caller:
        _mark(caller, ledger)
        caller.waits = 0
        run_within(caller, use_and_drop)
        assert caller.waits == 3


def test_listeners_on_every_pool_are_not_called(server_url: str) -> None:
    """An application that prepares each connection of its own pools does not do so to what no pool holds."""
    called: list[str] = []

    def listen(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    listeners = {name: listen(name) for name in ("connect", "checkout", "checkin", "reset", "close", "invalidate")}
    for name, listener in listeners.items():
        event.listen(Pool, name, listener)
    try:
        with psycopg.connect(server_url) as caller:
            run_within(caller, close)
            caller.rollback()
        gc.collect()
        assert called == []
    finally:
        for name, listener in listeners.items():
            event.remove(Pool, name, listener)


def test_statements_are_seen_by_those_who_listen_to_every_engine(server_url: str) -> None:
    """Tracing that listens to all of SQLAlchemy sees what a command sends on a caller's connection."""
    seen: list[str] = []

    def listener(*args: Any) -> None:
        seen.append(args[2])

    event.listen(Engine, "before_cursor_execute", listener)
    try:
        with psycopg.connect(server_url) as caller:
            run_within(caller, use_and_drop)
    finally:
        event.remove(Engine, "before_cursor_execute", listener)
    assert seen == ["SELECT 1"]


@pytest.mark.parametrize("fails", [False, True])
def test_in_autocommit_a_command_is_a_transaction_of_its_own(server_url: str, ledger: Ledger, fails: bool) -> None:
    """Outside a block the command commits whole when it returns, or leaves nothing; the mode stays."""

    def write_twice(c: Connection) -> None:
        write(c, "one")
        assert ledger.notes() == []
        write(c, "two")
        if fails:
            raise Stopped

    with psycopg.connect(server_url, autocommit=True, row_factory=dict_row) as caller:
        with suppress(Stopped):
            run_within(caller, write_twice, schema=ledger.schema)
        assert ledger.notes() == ([] if fails else ["one", "two"])
        assert (caller.autocommit, caller.info.transaction_status) == (True, TransactionStatus.IDLE)


@pytest.mark.parametrize("fails", [False, True])
def test_in_autocommit_the_same_of_an_asynchronous_caller(server_url: str, ledger: Ledger, fails: bool) -> None:
    """Outside a block the command commits whole when it returns, or leaves nothing; the mode stays."""

    def write_twice(c: Connection) -> None:
        write(c, "one")
        assert ledger.notes() == []
        write(c, "two")
        if fails:
            raise Stopped

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(server_url, autocommit=True) as caller:
            with suppress(Stopped):
                await run_within_async(caller, write_twice, schema=ledger.schema)
            assert ledger.notes() == ([] if fails else ["one", "two"])
            assert (caller.autocommit, caller.info.transaction_status) == (True, TransactionStatus.IDLE)

    asyncio.run(main())


def _mark(caller: psycopg.Connection[Any], ledger: Ledger) -> None:
    caller.execute(f"INSERT INTO {ledger.schema}.note VALUES (gen_random_uuid(), 'marker')")
