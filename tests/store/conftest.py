"""Directories for embedded servers: an empty one, and one whose database is made, which takes a copy's time.

And a table of tallies, for commands that are of no other use than to be sent; and an installation whose
statistics only the test makes.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from testigo.store.embedded import EmbeddedServer
from testigo.store.schema import migrate
from tests.services import create_database, drop_database
from tests.store.embedded_user import own_directory
from tests.store.planned import Planned
from tests.store.plans import never_vacuum
from tests.store.tally import Tally, tallies

SERVERS = ["server_url", pytest.param("postgres15_url", marks=pytest.mark.needs_postgres15)]


@pytest.fixture
def empty() -> Iterator[Path]:
    """A directory that does not exist yet."""
    with own_directory() as directory:
        yield directory


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    """A directory whose server was started and stopped once. Copy it, do not use it."""
    with own_directory() as directory:
        EmbeddedServer.use(directory).close()
        yield directory


@pytest.fixture
def directory(made: Path) -> Iterator[Path]:
    """A copy of it, the test's own."""
    with own_directory() as copy:
        subprocess.run(["cp", "-a", made, copy], check=True)
        yield copy


@pytest.fixture
def tally(database_url: str) -> Iterator[Tally]:
    """A table of tallies in the test's own database."""
    with tallies(database_url) as table:
        yield table


@pytest.fixture(params=SERVERS)
def planned(request: pytest.FixtureRequest) -> Iterator[Planned]:
    """An empty installation on a server of either version."""
    server: str = request.getfixturevalue(request.param)
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(server, name)
    migrate(url)
    with psycopg.connect(url, autocommit=True) as hand:
        never_vacuum(hand)
        yield Planned(url, hand)
    drop_database(server, name)
