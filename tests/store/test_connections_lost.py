"""A command that is cancelled, or whose connection is lost, cannot pass for one that was done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from testigo.errors import ConnectionUnsupported
from testigo.store.connections import run_within_async
from testigo.store.failures import is_connection_lost
from tests.store.callers import KINDS, Ledger, ledger, sqlalchemy_url, write

DEADLINE_SECONDS = 90.0
SHOWN = {"psycopg", "psycopg in a block", "Django", "asynchronous psycopg"}
"""The kinds whose connection SQLAlchemy is only shown."""


@pytest.fixture(name="ledger")
def fixture_ledger(server_url: str) -> Iterator[Ledger]:
    """A table for notes."""
    with ledger(server_url) as made:
        yield made


def end_own_session(c: Connection) -> None:
    """Lose the connection in the middle of a command."""
    write(c, "left behind")
    c.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


def write_and_wait(c: Connection) -> None:
    """Wait for the server, for ever if nobody stops it."""
    write(c, "left behind")
    c.execute(text("SELECT pg_sleep(3600)"))


def backend_pid(c: Connection) -> int:
    """The server's process that serves this connection."""
    return int(c.execute(text("SELECT pg_backend_pid()")).scalar_one())


@pytest.mark.parametrize("kind", sorted(set(KINDS) - SHOWN - {"Connection in a with block"}))
def test_the_owner_of_a_lost_connection_learns_of_it(server_url: str, ledger: Ledger, kind: str) -> None:
    """SQLAlchemy's user goes on after a rollback, on a new connection, and not one statement earlier (spec P-03)."""
    with KINDS[kind](server_url) as caller:
        caller.write(ledger, "theirs")
        with pytest.raises(DBAPIError) as raised:
            caller.run(end_own_session, schema=ledger.schema)
        assert is_connection_lost(raised.value)
        with pytest.raises(ConnectionUnsupported):
            caller.run(write, "too early", schema=ledger.schema)
        with pytest.raises(PendingRollbackError):
            caller.write(ledger, "too early")
        caller.rollback()
        caller.run(write, "ours", schema=ledger.schema)
        caller.commit()
    assert ledger.notes() == ["ours"]


@pytest.mark.parametrize("kind", sorted(SHOWN))
def test_a_lost_connection_takes_no_other_command(server_url: str, ledger: Ledger, kind: str) -> None:
    """Where SQLAlchemy is only shown the connection, another is not opened in its place (spec P-03)."""
    with KINDS[kind](server_url) as caller:
        caller.write(ledger, "theirs")
        with pytest.raises(DBAPIError) as raised:
            caller.run(end_own_session, schema=ledger.schema)
        assert is_connection_lost(raised.value)
        with pytest.raises(ConnectionUnsupported):
            caller.run(write, "too late", schema=ledger.schema)
    assert ledger.notes() == []


def test_a_cancelled_command_leaves_the_transaction_of_a_psycopg_connection_usable(
    server_url: str, ledger: Ledger
) -> None:
    """A task that is cancelled in a command takes the command back, and the caller's transaction goes on."""

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(server_url) as caller:
            await run_within_async(caller, write, "before", schema=ledger.schema)
            await _cancelled(ledger, caller.info.backend_pid, caller)
            await run_within_async(caller, write, "after", schema=ledger.schema)
            await caller.commit()

    asyncio.run(main())
    assert ledger.notes() == ["after", "before"]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_cancelled_command_loses_the_transaction_of_a_sqlalchemy_session(
    server_url: str, ledger: Ledger, driver: str
) -> None:
    """SQLAlchemy gives up a connection whose statement was cancelled; nothing of the transaction is committed."""

    async def main() -> None:
        engine = create_async_engine(sqlalchemy_url(server_url, driver))
        async with AsyncSession(engine) as caller:
            await run_within_async(caller, write, "before", schema=ledger.schema)
            await _cancelled(ledger, await run_within_async(caller, backend_pid), caller)
            with pytest.raises(PendingRollbackError):
                await caller.commit()
            await caller.rollback()
            await run_within_async(caller, write, "after", schema=ledger.schema)
            await caller.commit()
        await engine.dispose()

    asyncio.run(main())
    assert ledger.notes() == ["after"]


async def _cancelled(ledger: Ledger, pid: int, caller: object) -> None:
    """Cancel a command of the caller's while the server is at work on it."""
    task = asyncio.create_task(run_within_async(caller, write_and_wait, schema=ledger.schema))
    waiting = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND wait_event = 'PgSleep'"
    deadline = time.monotonic() + DEADLINE_SECONDS
    while ledger.other.execute(waiting, [pid]).fetchone() is None:
        assert time.monotonic() < deadline, "the command did not reach the server"
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
