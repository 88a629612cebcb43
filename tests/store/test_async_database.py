"""The door for asynchronous callers: the same commands, the same tries, and tasks that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import psycopg
import pytest
from sqlalchemy import Connection

from testigo.authority.actions import Action, SessionAction, new_id
from testigo.authority.cancel import How, cancel
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.renew import renew
from testigo.authority.sessions import NewSession, open_session
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit
from testigo.errors import StateConflict
from testigo.rules.outcomes import Succeed
from testigo.settings import STORE
from testigo.store.command import single_statement
from testigo.store.database import AsyncDatabase
from testigo.store.sql import Statement
from tests.store.day import until
from tests.store.tally import Raising, Tally, raised

PATIENCE_SECONDS = 60.0

T = TypeVar("T")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other fast."""
    store = replace(STORE, retry_first_seconds=0.001, retry_cap_seconds=0.01)
    monkeypatch.setattr("testigo.store.database.STORE", store)


def run(url: str, work: Callable[[AsyncDatabase], Awaitable[T]], pool_size: int = 1) -> T:
    """Work with an installation in an event loop of its own."""

    async def opened() -> T:
        async with AsyncDatabase(url, pool_size=pool_size) as db:
            return await asyncio.wait_for(work(db), PATIENCE_SECONDS)

    return asyncio.run(opened())


def test_the_same_commands_run_in_an_event_loop(database_url: str) -> None:
    """Commands of one statement, of several, and on the driver's own cursor are the same functions (spec P-01)."""

    async def work(db: AsyncDatabase) -> None:
        (first,) = (await db.run(submit, NewJob("work", queue="q"), action=Action("me"))).jobs
        (second,) = (await db.run(submit, NewJob("work", queue="q"), action=Action("me"))).jobs
        session = await db.run(open_session, NewSession("w", ("q",), ("work",)), action=Action("w"))
        grant = SessionAction(session.id, "w", 1)
        claimed = await db.run(claim, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=new_id(), action=grant)
        beat = await db.run(renew, session.id, [], epoch=session.epoch, beat=1, low_water=0)
        ends = [Settlement(lease, Succeed()) for lease in claimed.leases]
        settled = await db.run(settle, ends, action=SessionAction(session.id, "w", 2))
        cancelled = await db.run(cancel, [second.job_id], action=Action("me"))
        assert [lease.job_id for lease in claimed.leases] == [first.job_id]
        assert (beat.lost, settled.accepted, cancelled.jobs[0].how) == ((), frozenset({0}), How.CANCELLED)

    run(database_url, work)


def terminated(c: Connection) -> None:
    """An administrator ends the server's process in the middle of a statement."""
    c.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def terminated_under_the_drivers_cursor(c: Connection) -> None:
    """The same to a statement that goes past SQLAlchemy, as claim and settle do."""
    Statement("SELECT pg_terminate_backend(pg_backend_pid())").fetch(c, {})


@pytest.mark.parametrize("mishap", [terminated, terminated_under_the_drivers_cursor])
def test_a_command_whose_connection_is_ended_is_sent_again_whole(
    database_url: str, tally: Tally, mishap: Callable[[Connection], None]
) -> None:
    """What the first send did is undone, the second takes effect, and the pool is as before (spec P-01, P-03)."""
    raising = Raising(mishap)

    async def work(db: AsyncDatabase) -> tuple[int, int]:
        return await db.run(raising), await db.run(raised)

    assert (run(database_url, work), raising.met, tally.value) == ((2, 2), ["57P01"], 2)


def test_a_commands_own_refusal_passes_unchanged_and_leaves_nothing(database_url: str, tally: Tally) -> None:
    """What a command raises is the caller's, and its transaction is rolled back (spec P-01)."""
    refusal = StateConflict("no")

    def refuse(_: Connection) -> None:
        raise refusal

    async def work(db: AsyncDatabase) -> int:
        with pytest.raises(StateConflict) as met:
            await db.run(Raising(refuse))
        assert met.value is refusal
        return await db.run(raised)

    assert run(database_url, work) == 1


def waits(c: Connection) -> int:
    """A command of several statements that waits for a lock."""
    raised(c, 1)
    return raised(c)


@single_statement
def waits_in_autocommit(c: Connection) -> int:
    """A command of one statement that waits for a lock."""
    return raised(c)


@single_statement
def waits_under_the_drivers_cursor(c: Connection) -> Any:
    """The same, past SQLAlchemy, as claim and settle do."""
    return Statement("UPDATE tally SET n = n + 1 WHERE id = 0 RETURNING n").fetch(c, {})


@pytest.mark.parametrize("command", [waits, waits_in_autocommit, waits_under_the_drivers_cursor])
def test_a_cancelled_task_leaves_no_trace_and_a_sound_pool(
    database_url: str, tally: Tally, command: Callable[[Connection], Any]
) -> None:
    """What waits is called back and takes no effect, and the only connection serves the next command (spec P-03)."""

    async def work(db: AsyncDatabase) -> int:
        with psycopg.connect(database_url) as other:
            other.execute("SELECT FROM tally WHERE id = 0 FOR UPDATE")
            task = asyncio.create_task(db.run(command))
            await asyncio.to_thread(until, lambda: tally.number(_WAITING) == 1, "a command that waits for a lock")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert tally.number(_WAITING) == 0
        return await db.run(raised)

    assert (run(database_url, work), tally.value) == (1, 1)


_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_tasks_that_come_first_together_open_one_pool(database_url: str, tally: Tally) -> None:
    """However many tasks find the door closed, they share one pool, and each command takes effect once (spec P-01)."""

    async def work(db: AsyncDatabase) -> int:
        await asyncio.gather(*(db.run(raised, number) for number in range(10)))
        return tally.connections

    assert run(database_url, work, pool_size=2) <= 2
    assert tally.value == 10
