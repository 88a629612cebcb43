"""Between two short commands a connection stays out of the pool, and nobody is the worse for it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection, event

from testigo.errors import StateConflict
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.sql import Statement
from tests.worker.kit import await_that

_PID = Statement("SELECT pg_backend_pid()")


@single_statement
def short(c: Connection) -> int:
    """Which of the server's processes answers."""
    return int(_PID.fetch(c, {})[0][0])


@single_statement
def refused(c: Connection) -> int:
    """A command that is refused."""
    raise StateConflict(str(short(c)))


def several(c: Connection) -> int:
    """The same in a transaction."""
    return short(c)


@pytest.fixture
def one(database_url: str) -> Iterator[Database]:
    """An installation with one connection."""
    with Database(database_url, pool_size=1) as db:
        yield db


def test_short_commands_in_a_row_take_one_connection_once(one: Database) -> None:
    """Only the first takes one from the pool, and all are answered by it."""
    taken: list[int] = []
    event.listen(one._open(), "checkout", lambda *_: taken.append(1))
    assert len({one.run(short) for _ in range(5)}) == 1
    assert len(taken) == 1


def test_a_spare_connection_is_had_by_whoever_needs_one(one: Database) -> None:
    """What needs a transaction, and what follows a refusal, runs on the only connection as well."""
    pid = one.run(short)
    assert one.run(several) == pid
    assert one.run(short) == pid
    with pytest.raises(StateConflict):
        one.run(refused)
    assert one.run(several) == pid


def test_a_spare_connection_waits_for_no_answer(one: Database) -> None:
    """Who hangs up because an answer takes too long cuts none that nobody uses (spec P-10)."""
    pid = one.run(short)
    assert one.hang_up(after_seconds=1e-9) == 0
    assert one.run(short) == pid


def test_one_that_answers_while_all_are_let_go_is_not_kept(database_url: str, one: Database) -> None:
    """By whoever closes the installation meanwhile: its connection ends with its command."""

    @single_statement
    def closing(c: Connection) -> int:
        pid = short(c)
        one.close()
        return pid

    pid = one.run(closing)
    with psycopg.connect(database_url, autocommit=True) as hand:
        gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"
        await_that(lambda: (hand.execute(gone, [pid]).fetchone() or (False,))[0], "its end")
    assert one.run(short) != pid


def test_spare_connections_that_were_ended_are_replaced_at_once(database_url: str) -> None:
    """The command that finds one ended lets the others go with it, so one more try is enough (spec P-03)."""
    with Database(database_url, pool_size=3) as db, psycopg.connect(database_url, autocommit=True) as hand:

        @single_statement
        def two(c: Connection) -> set[int]:
            return {short(c), db.run(short)}

        pids = db.run(two)
        assert len(pids) == 2
        hand.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        tries: list[int] = []
        event.listen(db._open(), "handle_error", lambda _: tries.append(1))
        assert db.run(two).isdisjoint(pids)
        assert len(tries) == 1
