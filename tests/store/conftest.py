"""Directories for embedded servers: an empty one, and one whose database is made, which takes a copy's time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testigo.store.embedded import EmbeddedServer
from tests.store.embedded_user import lives, postmaster, until


@contextmanager
def own_directory() -> Iterator[Path]:
    """A place for a server's directory, not yet made; whatever runs in it is stopped, then it is removed."""
    parent = Path(tempfile.mkdtemp(prefix="testigo-test-"))
    directory = parent / "it"
    try:
        yield directory
    finally:
        if (directory / "alive").exists() and lives(directory):
            with suppress(ProcessLookupError):
                os.kill(postmaster(directory), signal.SIGQUIT)
            until(lambda: not lives(directory))
        shutil.rmtree(parent)


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
