"""Whatever is killed at whatever step of a publication: one whole analysis or none, acknowledged after the commit.

Worker, publisher, analyser server and database are killed with SIGKILL while the publisher pulls a page, waits for
the analysis, has inserted everything and waits for its own job, or has committed and acknowledges (spec D-05 to
D-11, P-30).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from testigo.authority.read import end
from testigo.evidence.model import AnalysisState
from testigo.settings import STORE
from testigo.store.schema import migrate
from tests.scan.kit import Scene, scene
from tests.services import Restartable, create_database, server_directory
from tests.worker.kit import PATIENCE_SECONDS, await_end, await_that
from tests.world import World

STEPS = ("page", "analysis", "job", "ack")
VICTIMS = ("publisher", "worker", "analyser", "database")
_ALWAYS = {
    "publisher": ("job", "ack"),
    "worker": ("analysis", "ack"),
    "analyser": ("page", "ack"),
    "database": ("job", "ack"),
}
"""Of each victim, before and after the commit, the steps at which every run of the suite kills it; `make soak` kills
all of them at every step."""
_KILLS = [
    pytest.param(step, victim, id=f"{victim}-{step}", marks=[] if step in _ALWAYS[victim] else [pytest.mark.soak])
    for step in STEPS
    for victim in VICTIMS
]
_LOCKS = {
    "analysis": "SELECT 1 FROM testigo.analysis WHERE id = %s FOR UPDATE",
    "job": "SELECT 1 FROM testigo.job WHERE id = %s FOR UPDATE",
}
_WAITS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE %s
"""


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
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    url = create_database(server.start(), name)
    migrate(url)
    return url


@pytest.mark.parametrize(("step", "victim"), _KILLS)
def test_killed(world: World, database_url: str, server: Restartable, tmp_path: Path, step: str, victim: str) -> None:
    """One whole analysis in the end, its findings once; no acknowledgement before the commit.

    Promise 8; spec D-05, D-09 to D-11.
    """
    with scene(world, database_url, tmp_path) as it:
        with _held(it, database_url, step):
            assert it.detail().view.persisted == bool(_findings(world)) == (step == "ack")
            _kill(it, server, victim)
        _ends_whole(it, world)


def _findings(world: World) -> int:
    (row,) = world.query("SELECT count(*) AS n FROM testigo.finding")
    return int(row.n)


def _held(it: Scene, url: str, step: str) -> AbstractContextManager[None]:
    return _held_by_gate(it, step) if step in ("page", "ack") else _held_by_lock(it, url, step)


@contextmanager
def _held_by_gate(it: Scene, step: str) -> Iterator[None]:
    it.gate.hold(step)
    it.begin()
    assert it.gate.reached.wait(PATIENCE_SECONDS)
    yield
    it.gate.open()


@contextmanager
def _held_by_lock(it: Scene, url: str, step: str) -> Iterator[None]:
    """The publisher is in its transaction, and waits for a lock that somebody else has."""
    it.gate.hold("page")
    it.begin()
    assert it.gate.reached.wait(PATIENCE_SECONDS)
    name = it.new.id if step == "analysis" else it.new.publish.id
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as eye:
        holder.execute(_LOCKS[step], [name])
        it.gate.open()
        await_that(
            lambda: eye.execute(_WAITS, [f"%testigo.{step}%FOR UPDATE%"]).fetchone() != (0,), "a wait for the lock"
        )
        yield
        with suppress(psycopg.OperationalError):  # it went with the database
            holder.rollback()


def _kill(it: Scene, server: Restartable, victim: str) -> None:
    match victim:
        case "publisher":
            it.kill_publisher()
        case "worker":
            it.kill_worker()
        case "analyser":
            it.kill_server()
        case _:
            server.kill()
            server.start()


def _ends_whole(it: Scene, world: World) -> None:
    assert await_end(world, it.new.publish.id) == ["succeeded"], world.db.run(end, it.new.publish.id).error
    found = it.detail()
    assert found.view.state is AnalysisState.COMPLETE
    assert _findings(world) == found.view.findings == sum(part.findings or 0 for part in found.parts) > 0
    acknowledged = it.gate.steps("ack")
    assert acknowledged
    assert all(each.persisted for each in acknowledged), "an acknowledgement before the commit"
