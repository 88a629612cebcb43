"""The engine on the oldest and the newest PostgreSQL that it serves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.invariants import check
from tests.journal.everything import do_everything
from tests.services import create_database, drop_database
from tests.store.day import live_a_day
from tests.world import World


@pytest.fixture(params=["server_url", pytest.param("postgres15_url", marks=pytest.mark.needs_postgres15)])
def served(request: pytest.FixtureRequest) -> Iterator[Database]:
    """An installation on a server of either version."""
    server: str = request.getfixturevalue(request.param)
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(server, name)
    migrate(url)
    with Database(url) as db:
        yield db
    drop_database(server, name)


def test_every_command_works(served: Database) -> None:
    """Each command does on either version what it promises, and every invariant holds after it (spec P-12)."""
    live_a_day(served, "day")
    do_everything(World(served), "everything")
    check(served)
