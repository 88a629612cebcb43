"""Wall clocks jump by an hour under load: no run is lost or accepted twice, and nobody is called dead (promise 9)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from testigo.settings import SESSIONS
from testigo.store.schema import migrate
from testigo.store.sql import Statement
from tests.faketime import Clock, faked_clock
from tests.services import Restartable, create_database, server_directory
from tests.worker.fleet import Fleet, fleet
from tests.worker.load import Load
from tests.world import World

pytestmark = pytest.mark.needs_faketime

JOBS = 120
HOUR_SECONDS = 3_600
TERM_SECONDS = SESSIONS.term_seconds
"""Long enough that only a clock could end a session here, and no load can."""

_OFF_BY = Statement(
    """
    SELECT max(abs(extract(epoch FROM at - CAST(CAST(data AS json) ->> 'started_at' AS timestamptz)))) AS seconds
    FROM testigo.event
    """
)
_AT_WORK = Statement("SELECT id FROM testigo.job WHERE state IN ('ready', 'leased', 'running', 'checkpointed')")


def test_of_a_worker(world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range) -> None:
    """It goes by clocks that nobody sets; only the times that it tells of its runs are off (spec P-18, P-19)."""
    with (
        faked_clock(tmp_path / "clock") as clock,
        fleet(tmp_path, [database_url] * 2, term_seconds=TERM_SECONDS, more=[clock.environment]) as workers,
    ):
        load = Load(world, chance, workers.tend)
        workers.ready()
        for _ in kills:
            load.add(JOBS)
            for ended in sorted(chance.sample(range(JOBS * 3 // 4), 2)):
                load.await_ended(ended)
                clock.move(chance.choice([-1, 1]) * HOUR_SECONDS)
            load.await_all()
            load.check()
        assert world.query(_OFF_BY)[0].seconds > HOUR_SECONDS / 2, "the clock was not moved"
        _nobody_was_called_dead(workers)


class TestOfTheDatabase:
    """The clock that dates follow."""

    @pytest.fixture
    def clock(self) -> Iterator[Clock]:
        """The clock of the server."""
        with server_directory() as directory, faked_clock(directory / "clock") as clock:
            yield clock

    @pytest.fixture
    def server(self, clock: Clock) -> Iterator[Restartable]:
        """A server whose clock is moved."""
        with server_directory() as directory:
            restartable = Restartable(directory, clock.environment)
            yield restartable
            restartable.stop()

    @pytest.fixture
    def database_url(self, server: Restartable, request: pytest.FixtureRequest) -> str:
        """An installation on it."""
        url = create_database(server.start(), request.node.name)
        migrate(url)
        return url

    def test_dates_follow_it_and_nothing_else_does(
        self, world: World, clock: Clock, database_url: str, tmp_path: Path, chance: random.Random, kills: range
    ) -> None:
        """What was to be tried again waits while the clock is behind; all else goes on (spec P-08, P-18)."""
        with fleet(tmp_path, [database_url] * 2, term_seconds=TERM_SECONDS) as workers:
            load = Load(world, chance, workers.tend)
            workers.ready()
            for _ in kills:
                load.add(JOBS)
                for ended in sorted(chance.sample(range(JOBS // 2), 2)):
                    load.await_ended(ended)
                    clock.move(chance.choice([-1, 0, 1]) * HOUR_SECONDS)
                load.add(JOBS // 4)
                load.await_that(lambda: not world.query(_AT_WORK))
                clock.move(HOUR_SECONDS)
                load.await_all()
                load.check()
            _nobody_was_called_dead(workers)


def _nobody_was_called_dead(workers: Fleet) -> None:
    assert [(each.starts, each.sessions) for each in workers.workers] == [(1, 1)] * len(workers.workers)
