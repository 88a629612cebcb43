"""The door: which commands are sent again, how often, and what the connections are like afterwards."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.errors import AuthorityUnavailable, Busy, KeyBusy, StateConflict
from testigo.settings import STORE
from testigo.store.command import single_statement
from testigo.store.database import Database, _pause
from testigo.store.failures import sqlstate_of
from testigo.store.sql import Statement
from tests.store.day import until
from tests.store.tally import Raising, Tally, backend_pid, raised
from tests.wire import wire

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other fast, and there are enough of them for a server to start meanwhile."""
    store = replace(STORE, retry_first_seconds=0.001, retry_cap_seconds=0.05, tries=1000)
    monkeypatch.setattr("testigo.store.database.STORE", store)


def terminated(c: Connection) -> None:
    """An administrator ends the server's process in the middle of a statement."""
    c.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def terminated_under_the_drivers_cursor(c: Connection) -> None:
    """The same to a statement that goes past SQLAlchemy, as claim and settle do."""
    Statement("SELECT pg_terminate_backend(pg_backend_pid())").fetch(c, {})


@pytest.mark.parametrize("code", ["53100", "53200"], ids=["disk", "memory"])
def test_a_server_without_room_is_told_of_at_once(db: Database, tally: Tally, code: str) -> None:
    """A full disk is not soon empty: the caller hears of it in our words, and that nothing was done."""

    def fills(c: Connection) -> None:
        raised(c)
        c.exec_driver_sql(f"DO $$BEGIN RAISE EXCEPTION 'could not extend' USING ERRCODE = '{code}'; END$$")

    with pytest.raises(Busy, match="no room: could not extend") as refused:
        db.run(fills)
    assert "sent again unchanged" in refused.value.remedy
    assert tally.value == 0


@pytest.mark.parametrize("mishap", [terminated, terminated_under_the_drivers_cursor])
def test_a_command_whose_connection_is_ended_is_sent_again_whole(
    db: Database, tally: Tally, mishap: Callable[[Connection], None]
) -> None:
    """What the first send did is undone, the second takes effect, and the pool is as before (spec P-01, P-03)."""
    raising = Raising(mishap)
    assert (db.run(raising), raising.met) == (2, ["57P01"])
    assert (db.run(raised), tally.value) == (2, 2)


def test_a_command_is_sent_again_that_lost_its_connection_between_two_statements(db: Database, tally: Tally) -> None:
    """A connection that ended while nobody used it is found out by the next statement (spec P-03)."""

    def ended(c: Connection) -> None:
        tally.hand.execute("SELECT pg_terminate_backend(%s, 60000)", (backend_pid(c),))
        raised(c)

    raising = Raising(ended)
    assert (db.run(raising), raising.met) == (2, ["57P01"])
    assert tally.value == 1


def test_a_command_that_could_not_be_serialised_is_sent_again(db: Database, tally: Tally) -> None:
    """40001 comes where somebody changed what a transaction of that level had seen; it is passing (spec P-01)."""
    sent: list[int] = []

    @single_statement
    def command(c: Connection) -> int:
        c.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
        c.exec_driver_sql("SELECT n FROM tally")
        if not sent:
            tally.hand.execute("UPDATE tally SET n = n + 10 WHERE id = 0")
        sent.append(1)
        n = raised(c)
        c.exec_driver_sql("COMMIT")
        return n

    assert (db.run(command), len(sent)) == (11, 2)


def test_the_victim_of_a_deadlock_is_sent_again(db: Database, tally: Tally) -> None:
    """Two commands that lock in opposite order both take effect, one of them in a second send (spec P-01)."""
    both_hold_one = threading.Barrier(2)
    sent: list[int] = []

    def command(c: Connection, *numbers: int) -> None:
        sent.append(numbers[0])
        raised(c, numbers[0])
        if sent.count(numbers[0]) == 1:
            both_hold_one.wait(PATIENCE_SECONDS)
        raised(c, numbers[1])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda numbers: db.run(command, *numbers), [(1, 2), (2, 1)]))
    assert (sorted(sent) in ([1, 1, 2], [1, 2, 2]), tally.value) == (True, 4)


@pytest.mark.parametrize(
    ("sqlstate", "statements"),
    [
        ("23514", ["UPDATE tally SET n = 1000"]),
        ("23505", ["INSERT INTO tally VALUES (0, 0)"]),
        ("22P02", ["SELECT CAST('x' AS integer)"]),
        ("22012", ["SELECT 1 / 0"]),
        ("42P01", ["SELECT * FROM nowhere"]),
        ("25006", ["SET TRANSACTION READ ONLY", "UPDATE tally SET n = 1"]),
        ("57014", ["SET LOCAL statement_timeout = 1", "SELECT pg_sleep(60)"]),
        ("TG001", ["DO $$BEGIN RAISE EXCEPTION 'final' USING ERRCODE = 'TG001'; END$$"]),
    ],
)
def test_what_would_fail_again_is_not_sent_again(
    db: Database, tally: Tally, sqlstate: str, statements: list[str]
) -> None:
    """Only what is passing is retried: any other error reaches the caller after one send, undone (spec P-01)."""
    raising = Raising(lambda c: [c.exec_driver_sql(each) for each in statements])
    with pytest.raises(DBAPIError) as raised_error:
        db.run(raising)
    assert (raising.sent, raising.met, sqlstate_of(raised_error.value)) == (1, [sqlstate], sqlstate)
    assert (tally.value, db.run(raised)) == (0, 1)


@pytest.mark.parametrize("refusal", [StateConflict("no"), Busy("not now"), LookupError("a mistake")])
def test_a_commands_own_refusal_passes_unchanged_and_leaves_nothing(
    db: Database, tally: Tally, refusal: Exception
) -> None:
    """What a command raises is the caller's, the very object, and its transaction is rolled back (spec P-01)."""

    def refuse(_: Connection) -> None:
        raise refusal

    raising = Raising(refuse)
    with pytest.raises(type(refusal)) as raised_error:
        db.run(raising)
    assert raised_error.value is refusal
    assert (raising.sent, tally.value, db.run(raised)) == (1, 0, 1)


def test_a_lock_that_is_not_freed_in_time_is_answered_busy(
    db: Database, database_url: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for a row is bounded by lock_timeout, not retried, and told as KEY_BUSY (spec P-08)."""
    monkeypatch.setattr("testigo.store.command.STORE", replace(STORE, lock_timeout_seconds=0.05))
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM tally WHERE id = 0 FOR UPDATE")
        with pytest.raises(KeyBusy) as busy:
            db.run(raised)
    assert sqlstate_of(busy.value.__cause__ or busy.value) == "55P03"
    assert (db.run(raised), tally.value) == (1, 1)


def test_a_client_that_stops_in_a_transaction_is_ended_and_sends_again(
    db: Database, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server frees the locks of a client that holds them and says nothing; on waking it starts over (spec P-10)."""
    monkeypatch.setattr("testigo.store.command.STORE", replace(STORE, idle_in_transaction_seconds=0.1))

    def stop(c: Connection) -> None:
        pid = backend_pid(c)
        until(lambda: not tally.runs(pid), "the end of a transaction that is idle")
        tally.hand.execute("UPDATE tally SET n = n + 1 WHERE id = 0")
        raised(c)

    raising = Raising(stop)
    assert (db.run(raising), raising.met) == (2, ["25P03"])
    assert tally.value == 2


def test_a_database_that_never_answers_is_told_after_the_last_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After so many tries the caller gets AUTHORITY_UNAVAILABLE with the last try's reason (spec P-03)."""
    waits: list[float] = []
    monkeypatch.setattr("testigo.store.database.STORE", replace(STORE, tries=4, retry_first_seconds=0.001))
    monkeypatch.setattr("testigo.store.database.time.sleep", waits.append)
    nowhere = Database(f"postgresql://somebody@/x?host={tmp_path}")
    with nowhere, pytest.raises(AuthorityUnavailable, match=r"failed 4 tries: .*No such file") as gone:
        nowhere.run(raised)
    assert len(waits) == 3
    assert isinstance(gone.value.__cause__, DBAPIError)


def test_tries_are_spread_out_and_never_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait before a try is drawn from 0 to a bound that doubles up to a cap, so that no herd forms (spec P-01)."""
    monkeypatch.setattr("testigo.store.database.STORE", STORE)
    monkeypatch.setattr("testigo.store.database.random", random.Random(7))
    for tried in range(1, STORE.tries):
        bound = min(STORE.retry_cap_seconds, STORE.retry_first_seconds * 2**tried)
        waits = [_pause(psycopg.OperationalError("gone"), tried) for _ in range(200)]
        assert 0 <= min(waits) < bound * 0.1
        assert bound * 0.9 < max(waits) <= bound


def test_more_threads_than_connections_share_them(database_url: str, tally: Tally) -> None:
    """Threads wait for each other's connections; each command takes effect once, on a pool of its size (spec P-01)."""
    together = threading.Barrier(8)
    seen: list[int] = []

    def work(number: int) -> None:
        together.wait(PATIENCE_SECONDS)
        for _ in range(10):
            db.run(raised, number)
            seen.append(tally_connections())

    def tally_connections() -> int:
        return db.run(lambda c: int(c.exec_driver_sql(_CONNECTIONS).scalar_one()))

    with Database(database_url, pool_size=2) as db, ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert (tally.value, max(seen)) == (80, 2)


_CONNECTIONS = """
    SELECT count(*) - 1 FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
"""


def test_a_pool_without_a_free_connection_answers_busy(database_url: str, tally: Tally) -> None:
    """A caller who waits in vain for a connection gets an error of ours, and nothing was sent (spec P-08)."""
    with Database(database_url, pool_size=1) as db:
        db._open().pool._timeout = 0.01  # type: ignore[attr-defined]

        def nested(_: Connection) -> int:
            return db.run(raised)

        with pytest.raises(Busy, match="No connection became free"):
            db.run(nested)
        assert (tally.value, db.run(raised)) == (0, 1)


def test_a_door_that_was_closed_opens_again(db: Database, tally: Tally) -> None:
    """Closing ends every connection and forbids nothing."""
    db.run(raised)
    db.close()
    until(lambda: tally.connections == 0, "the end of the connections")
    assert db.run(raised) == 2


@pytest.mark.parametrize("after_seconds", [0.0, 0.2])
def test_a_wait_for_an_answer_that_never_comes_ends_when_somebody_hangs_up(
    tally: Tally, database_url: str, after_seconds: float
) -> None:
    """What stands between us and the server acknowledges what it swallows: the command is sent again (spec P-03)."""
    with wire(database_url) as (laid, url), Database(url) as db, ThreadPoolExecutor(1) as caller:
        assert db.run(raised) == 1
        laid.fall_silent()
        answer = caller.submit(db.run, raised)

        until(laid.has_swallowed, "the command on its way")
        until(lambda: db.hang_up(after_seconds) == 1, "the end of the wait")
        assert (answer.result(60), tally.value) == (2, 2)
