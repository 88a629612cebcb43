"""How commands are sent: in which transactions, under which limits, and what they leave in the session."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from testigo.authority.cancel import cancel
from testigo.authority.pause import Scope, pause
from testigo.authority.renew import renew
from testigo.authority.save import save
from testigo.errors import StateConflict
from testigo.rules.documents import encode
from testigo.store.database import Database
from tests.store.day import live_a_day
from tests.store.tally import Tally, overheard, raised, session
from tests.world import World, held

_BOUNDS = "SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)"


@pytest.fixture
def one(database_url: str) -> Iterator[Database]:
    """The installation with a single connection."""
    with Database(database_url, pool_size=1) as database:
        yield database


def test_a_command_of_one_statement_is_one_statement_and_no_transaction(one: Database) -> None:
    """Submit, claim, save, settle and renew send a statement each: no BEGIN waits for an answer (spec P-10)."""
    world = World(one)
    worker = world.worker()
    with overheard(one) as told:
        world.submit()
        lease = worker.take()
        one.run(save, held(lease), encode(1), number=1, action=worker.action())
        one.run(renew, worker.id, [held(lease)], epoch=1, beat=1, low_water=0)
        worker.succeed(lease._replace(revision=lease.revision + 1))
    assert [statement.split()[0] for statement in _statements(told)] == ["WITH"] * 5


def test_a_command_of_several_statements_bounds_its_waits_and_its_idling_until_it_ends(one: Database) -> None:
    """Whoever may hold a lock between two statements sets both time-outs, for its own transaction (spec P-08, P-10)."""
    world = World(one)
    (job,) = world.submit()
    with overheard(one) as told:
        one.run(cancel, [job], action=world.action())
    statements = _statements(told)
    assert statements[:2] == ["BEGIN ISOLATION LEVEL READ COMMITTED", _BOUNDS]
    assert statements[-1] == "COMMIT"
    assert "'5000'" in next(line for line in told if "Bind" in line)


def test_a_command_that_fails_ends_its_transaction(one: Database, tally: Tally) -> None:
    """A refusal is followed by ROLLBACK, so no lock outlives it (spec P-10)."""

    def refused(c: Connection) -> None:
        raised(c)
        raise StateConflict("no")

    one.run(raised)
    with overheard(one) as told, pytest.raises(StateConflict):
        one.run(refused)
    assert (_statements(told)[-1], tally.value) == ("ROLLBACK", 1)


def test_a_day_of_commands_leaves_nothing_in_the_session(one: Database) -> None:
    """After every command each setting is what it was: only SET LOCAL is used, and nothing is held (spec P-12)."""
    before = one.run(session)
    live_a_day(one, "q")
    one.run(pause, Scope.KIND, "other", action=World(one).action())
    assert one.run(session) == before


def _statements(told: list[str]) -> list[str]:
    """The SQL in the messages that carry any."""
    found = [re.match(r"F\t\d+\t(?:Query|Parse)\t (?:\"[^\"]*\" )?\"(.*)\"", line) for line in told]
    return [match.group(1) for match in found if match]
