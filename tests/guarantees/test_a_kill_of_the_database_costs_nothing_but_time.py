"""SIGKILL of PostgreSQL under load: what was accepted is there when it is back, and workers go on (promises 1, 4)."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testigo.settings import STORE
from testigo.store.schema import migrate
from tests.services import Restartable, create_database, server_directory
from tests.worker.fleet import fleet
from tests.worker.load import Load
from tests.world import World

JOBS = 120


@pytest.fixture(scope="module")
def server() -> Iterator[Restartable]:
    """A server that may be killed."""
    with server_directory() as directory:
        restartable = Restartable(directory)
        yield restartable
        restartable.stop()


@pytest.fixture
def database_url(server: Restartable, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installation on it, which the test itself asks until it answers."""
    monkeypatch.setattr("testigo.store.database.STORE", replace(STORE, tries=1000, retry_cap_seconds=0.1))
    url = create_database(server.start(), request.node.name)
    migrate(url)
    return url


def test_a_backend(
    world: World, database_url: str, server: Restartable, tmp_path: Path, chance: random.Random, kills: range
) -> None:
    """The server ends every other one as well and recovers, in the middle of claims and settles (spec P-01, P-03)."""

    def kill() -> None:
        os.kill(chance.choice(server.processes()[1:]), signal.SIGKILL)

    _attack(world, database_url, tmp_path, chance, kills, kill)


def test_the_whole_server(
    world: World, database_url: str, server: Restartable, tmp_path: Path, chance: random.Random, kills: range
) -> None:
    """It is away, refuses, recovers and is back; workers keep what ended meanwhile (spec P-16, P-17)."""

    def kill() -> None:
        server.kill()
        server.start()

    _attack(world, database_url, tmp_path, chance, kills, kill)


def _attack(
    world: World, url: str, folder: Path, chance: random.Random, kills: range, kill: Callable[[], object]
) -> None:
    with fleet(folder, [url] * 2) as workers:
        load = Load(world, chance, workers.tend)
        workers.ready()
        for _ in kills:
            load.add(JOBS)
            load.await_ended(chance.randrange(JOBS * 3 // 4))
            kill()
            load.add(JOBS // 4)
            load.await_all()
            load.check()
        assert all(each.starts == 1 for each in workers.workers), "a worker outlives its database"
