"""A command on a caller's connection is part of the caller's transaction, and leaves no other trace."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from testigo.store.failures import sqlstate_of
from testigo.store.sql import schema_of
from tests.store.callers import KINDS, Caller, Ledger, ledger, write


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


class Raised(BaseException):
    """Stops a command the way an interrupt does: it is no Exception."""


def stop(c: Connection) -> None:
    """Fail by an exception of the command's own, with its savepoint released."""
    write(c, "left behind")
    raise Raised


def break_in_savepoint(c: Connection) -> None:
    """Fail by an error of the database, inside the command's savepoint."""
    write(c, "left behind")
    with c.begin_nested():
        c.execute(text("SELECT 1 / 0"))


def break_outside(c: Connection) -> None:
    """Fail by an error of the database, outside every savepoint of the command's."""
    write(c, "left behind")
    c.execute(text("SELECT 1 / 0"))


@pytest.fixture(params=[stop, break_in_savepoint, break_outside])
def failing(request: pytest.FixtureRequest) -> Callable[[Connection], None]:
    """A command that writes and then raises, in each way there is."""
    command: Callable[[Connection], None] = request.param
    return command


def test_it_is_seen_when_the_caller_commits_and_not_before(caller: Caller, ledger: Ledger) -> None:
    """What a command wrote is committed by its caller, with what the caller wrote (spec P-11)."""
    caller.write(ledger, "theirs")
    assert caller.run(write, "one", "two", schema=ledger.schema) == ["one", "two"]
    assert ledger.notes() == []
    caller.commit()
    assert ledger.notes() == ["one", "theirs", "two"]


def test_it_is_gone_when_the_caller_rolls_back(caller: Caller, ledger: Ledger) -> None:
    """What a command wrote shares the fate of what the caller wrote (spec P-11)."""
    caller.write(ledger, "theirs")
    caller.run(write, "ours", schema=ledger.schema)
    caller.rollback()
    assert ledger.notes() == []


@pytest.mark.parametrize(("end", "left"), [("commit", ["ours"]), ("rollback", [])])
def test_a_transaction_that_it_is_the_first_to_use_is_the_callers(
    caller: Caller, ledger: Ledger, end: str, left: list[str]
) -> None:
    """A command that is the first to send anything does not end the transaction that begins then (spec P-11)."""
    caller.run(write, "ours", schema=ledger.schema)
    assert ledger.notes() == []
    getattr(caller, end)()
    assert ledger.notes() == left


def test_a_command_that_raises_leaves_nothing_and_the_transaction_usable(
    caller: Caller, ledger: Ledger, failing: Callable[[Connection], None]
) -> None:
    """However a command fails, the caller goes on with a transaction that holds nothing of it (spec P-02)."""
    caller.write(ledger, "before")
    with pytest.raises((Raised, DBAPIError)):
        caller.run(failing, schema=ledger.schema)
    caller.write(ledger, "after")
    caller.run(write, "again", schema=ledger.schema)
    caller.commit()
    assert ledger.notes() == ["after", "again", "before"]


def test_a_command_that_fails_first_leaves_the_transaction_usable(
    caller: Caller, ledger: Ledger, failing: Callable[[Connection], None]
) -> None:
    """The same where nothing was sent before the command that fails (spec P-02)."""
    with pytest.raises((Raised, DBAPIError)):
        caller.run(failing, schema=ledger.schema)
    caller.write(ledger, "after")
    assert ledger.notes() == []
    caller.commit()
    assert ledger.notes() == ["after"]


def test_a_command_may_recover_inside_its_own_savepoint(caller: Caller, ledger: Ledger) -> None:
    """A unique violation rolls the statement back to a savepoint, and the command reads on (spec P-02)."""
    same = (str(uuid.uuid4()),)

    def write_twice(c: Connection) -> Any:
        write(c, "first", ids=same)
        with pytest.raises(DBAPIError) as raised:
            write(c, "second", ids=same)
        assert sqlstate_of(raised.value) == "23505"
        return c.scalar(text(f"SELECT note FROM {schema_of(c)}.note WHERE id = CAST(:id AS uuid)"), {"id": same[0]})

    assert caller.run(write_twice, schema=ledger.schema) == "first"
    caller.commit()
    assert ledger.notes() == ["first"]


def test_the_callers_savepoint_still_takes_back_all_that_came_after_it(
    caller: Caller, ledger: Ledger, failing: Callable[[Connection], None]
) -> None:
    """Savepoints of commands, failed ones too, do not stand in for one of the caller's (spec P-02)."""
    caller.write(ledger, "before")
    back = caller.savepoint()
    caller.write(ledger, "inside, first")
    with pytest.raises((Raised, DBAPIError)):
        caller.run(failing, schema=ledger.schema)
    caller.run(write, "inside", schema=ledger.schema)
    caller.write(ledger, "inside, last")
    back()
    caller.write(ledger, "after")
    caller.commit()
    assert ledger.notes() == ["after", "before"]


def test_nothing_sticks_to_the_connection(caller: Caller, ledger: Ledger) -> None:
    """Options, modes, factories, handlers and the session's settings are afterwards what they were (spec P-12)."""
    caller.execute("SELECT 1")
    before = caller.settings()
    caller.run(write, "ours", schema=ledger.schema)
    assert caller.settings() == before
    with pytest.raises(DBAPIError):
        caller.run(break_outside, schema=ledger.schema)
    assert caller.settings() == before


def test_options_that_a_command_sets_do_not_stick_either(caller: Caller, ledger: Ledger) -> None:
    """What a command does to its Connection ends with the command."""
    caller.execute("SELECT 1")
    before = caller.settings()
    caller.run(lambda c: c.execution_options(ours="gone"))
    assert caller.settings() == before


def test_the_command_knows_its_schema(caller: Caller) -> None:
    """A command finds the schema of its installation on its Connection: `testigo`, or the one that is named."""
    assert caller.run(schema_of) == "testigo"
    assert caller.run(schema_of, schema="another") == "another"
    assert caller.run(schema_of) == "testigo"


def test_a_command_reads_the_same_values_on_every_kind_of_connection(caller: Caller) -> None:
    """Adapters, row factories and time zones of a caller's library do not reach a command."""
    select = """
        SELECT CAST('{"a": [1, null]}' AS jsonb), CAST('2026-02-03T04:05:06Z' AS timestamptz), ARRAY['x', NULL],
               CAST('00000000-0000-7000-8000-000000000000' AS uuid), CAST(1.50 AS numeric), CAST('\\x00ff' AS bytea),
               CAST(:given AS text)
        """

    def read(c: Connection) -> tuple[Any, ...]:
        return tuple(c.execute(text(select), {"given": "it's"}).one())

    assert caller.run(read) == (
        {"a": [1, None]},
        datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
        ["x", None],
        uuid.UUID("00000000-0000-7000-8000-000000000000"),
        Decimal("1.50"),
        b"\x00\xff",
        "it's",
    )
