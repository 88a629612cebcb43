"""Directories for embedded servers: an empty one, and one whose database is made, which takes a copy's time.

And a table of tallies, for commands that are of no other use than to be sent.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testigo.store.embedded import EmbeddedServer
from tests.store.embedded_user import own_directory
from tests.store.tally import Tally, tallies


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
