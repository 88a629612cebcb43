"""A commit that was not waited for until a standby had it is no answer: the command is sent again (spec P-03)."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from testigo.authority.actions import Action
from testigo.authority.pause import Scope, pause
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit
from testigo.errors import AuthorityUnavailable
from testigo.settings import STORE
from testigo.store.database import AsyncDatabase, Database
from testigo.store.schema import migrate
from tests.services import embedded_bindir, postgres, server_directory
from tests.worker.kit import PATIENCE_SECONDS

CANCEL = """
    SELECT pg_cancel_backend(pid)
    FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()
"""

Command = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def consistent() -> None:
    """Here each test looks for itself at a server of its own."""


@pytest.fixture(scope="module")
def hand() -> Iterator[psycopg.Connection[Any]]:
    """A connection to a migrated server of which a test may change the settings."""
    with server_directory() as directory, postgres(embedded_bindir(), directory, max_wal_senders=2) as server:
        migrate(server.url)
        with psycopg.connect(server.url, autocommit=True, options="-c synchronous_commit=local") as connection:
            yield connection


@pytest.fixture
def url(hand: psycopg.Connection[Any]) -> Iterator[str]:
    """The server's URL, while it waits with every commit for a standby that does not exist."""
    await_standby(hand, "nobody")
    yield hand.info.dsn and f"postgresql:///{hand.info.dbname}?host={hand.info.host}&user={hand.info.user}"
    await_standby(hand, "")


def await_standby(hand: psycopg.Connection[Any], name: str) -> None:
    """Have every commit wait for this standby, or for none."""
    hand.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    hand.execute("SELECT pg_reload_conf()")
    while hand.execute("SHOW synchronous_standby_names").fetchone() != (name,):
        hand.execute("SELECT pg_reload_conf()")


@contextmanager
def cancelling(hand: psycopg.Connection[Any], *, times: int | None = None) -> Iterator[list[int]]:
    """Cancel waits for the standby as they come, all of them or so many, and then let no commit wait any more."""
    ends = threading.Event()
    cancelled: list[int] = []

    def cancel() -> None:
        while not ends.is_set() and (times is None or len(cancelled) < times):
            cancelled.extend(1 for _ in hand.execute(CANCEL))
            ends.wait(0.01)
        if times is not None:
            await_standby(hand, "")

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield cancelled
    finally:
        ends.set()
        thread.join(PATIENCE_SECONDS)


def submits(db: Database) -> Any:
    """A command of one statement."""
    return db.run(submit, NewJob("work", queue="q"), action=Action("tester"))


def pauses(db: Database) -> Any:
    """A command of several."""
    return db.run(pause, Scope.QUEUE, "q", note="", action=Action("tester"))


@pytest.mark.parametrize("command", [submits, pauses])
def test_a_cancelled_wait_for_a_standby_is_no_answer(hand: psycopg.Connection[Any], url: str, command: Command) -> None:
    """The server says that it committed, with a warning: the command is sent again until a commit was waited for,
    and took effect once (spec P-03)."""
    receipts = count(hand)
    with Database(url) as db, cancelling(hand, times=3) as cancelled:
        assert command(db).replayed
    assert len(cancelled) >= 3
    assert count(hand) == receipts + 1


def test_it_is_no_answer_for_asynchronous_callers_either(hand: psycopg.Connection[Any], url: str) -> None:
    """The same door, in the other colour (spec P-03)."""

    async def ask() -> bool:
        async with AsyncDatabase(url) as db:
            receipt = await db.run(submit, NewJob("work", queue="q"), action=Action("tester"))
            return receipt.replayed

    with cancelling(hand, times=3):
        assert asyncio.run(ask())


def test_while_no_standby_answers_nothing_is_answered(
    hand: psycopg.Connection[Any], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cancels every wait is told that it is not known whether the command took effect; once the standby is
    there, the same command finds that it did (spec P-01, P-03)."""
    monkeypatch.setattr("testigo.store.database.STORE", dataclasses.replace(STORE, tries=3))
    job, action = NewJob("work", queue="q"), Action("tester")
    with Database(url) as db:
        with cancelling(hand), pytest.raises(AuthorityUnavailable, match="standby"):
            db.run(submit, job, action=action)
        await_standby(hand, "")
        receipt = db.run(submit, job, action=action)
        assert (receipt.replayed, receipt.jobs[0].job_id) == (True, job.id)
        assert not submits(db).replayed


def count(hand: psycopg.Connection[Any]) -> int:
    """How many receipts there are."""
    (receipts,) = hand.execute("SELECT count(*) FROM testigo.receipt").fetchone() or (0,)
    return int(receipts)
