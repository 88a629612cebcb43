"""The suite's frame: what a machine must have, and the servers that a run shares."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from testigo.evidence.server.installing import install
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.machine import NEEDS, deselect_unmet, in_ci, unmet
from tests.services import (
    create_database,
    drop_database,
    embedded_bindir,
    postgres,
    postgres15_bindir,
    server_directory,
)
from tests.shared_server import run_directory, shared_folder, shared_server_url
from tests.world import World

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

RUN = pytest.StashKey[Path]()
DESELECTED = pytest.StashKey[list[str]]()

# A slow machine is not a fault of the code: nothing here may fail by the clock.
settings.register_profile("testigo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("testigo")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an incomplete machine in CI; give the run its directory, one for all its processes."""
    for need in NEEDS:
        config.addinivalue_line("markers", f"{need.marker}: needs {need.what}")
    if in_ci() and (missing := unmet()):
        lines = "\n".join(f"  {need.what}, {need.why}: {need.remedy}" for need in missing)
        raise pytest.UsageError(f"TESTIGO_CI=1, and this machine lacks\n{lines}")
    config.stash[DESELECTED] = []
    if hasattr(config, "workerinput"):
        config.stash[RUN] = Path(config.workerinput["testigo_run"])
    else:
        stack = ExitStack()
        config.stash[RUN] = stack.enter_context(run_directory())
        config.add_cleanup(stack.close)


def pytest_collection_finish() -> None:
    """Keep what was collected, thousands of tests, out of the way of the garbage collector: it stays anyway."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine cannot run."""
    deselected, lines = deselect_unmet(items)
    config.hook.pytest_deselected(items=deselected)
    config.stash[DESELECTED] = lines
    if hasattr(config, "workeroutput"):
        config.workeroutput["testigo_deselected"] = lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what was left out."""
    for line in config.stash[DESELECTED]:
        terminalreporter.write_line(line, yellow=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker process of pytest-xdist which run it belongs to."""
    node.workerinput["testigo_run"] = str(node.config.stash[RUN])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Learn from a worker process what was left out; each of them collects the same tests."""
    node.config.stash[DESELECTED] = getattr(node, "workeroutput", {}).get("testigo_deselected", [])


@pytest.fixture(scope="session")
def run_folder(pytestconfig: pytest.Config) -> Path:
    """The run's directory, one for all its processes."""
    return pytestconfig.stash[RUN]


@pytest.fixture(scope="session")
def server_url(run_folder: Path) -> str:
    """The database `postgres` of a PostgreSQL 18 that the whole run shares (400 connections, no fsync)."""
    return shared_server_url(run_folder, "postgres18", embedded_bindir())


@pytest.fixture(scope="session")
def postgres15_url(run_folder: Path) -> str:
    """The same of a PostgreSQL 15. A test that uses it is marked `needs_postgres15`."""
    bindir = postgres15_bindir()
    assert bindir is not None, "mark the test needs_postgres15"
    return shared_server_url(run_folder, "postgres15", bindir)


@pytest.fixture
def fresh_database(server_url: str) -> Iterator[str]:
    """The URL of an empty database on the shared server, the test's own."""
    name = f"test_{uuid.uuid4().hex}"
    yield create_database(server_url, name)
    drop_database(server_url, name)


@pytest.fixture(scope="session")
def template_name(server_url: str) -> Iterator[str]:
    """A migrated database on the shared server, from which each test's own is copied."""
    name = f"template_{uuid.uuid4().hex}"
    migrate(create_database(server_url, name))
    yield name
    drop_database(server_url, name)


@pytest.fixture
def database_url(server_url: str, template_name: str) -> Iterator[str]:
    """The URL of a migrated database on the shared server, the test's own."""
    name = f"test_{uuid.uuid4().hex}"
    yield create_database(server_url, name, template=template_name)
    drop_database(server_url, name)


@pytest.fixture(scope="session")
def quiet_server_url() -> Iterator[str]:
    """The database `postgres` of a server that only this process's tests use, with a migrated database `template`."""
    with server_directory() as directory, postgres(embedded_bindir(), directory) as server:
        migrate(create_database(server.url, "template"))
        yield server.url


@pytest.fixture
def quiet_database_url(quiet_server_url: str) -> Iterator[str]:
    """As `database_url`, where no other test has a transaction: for what waits for every one of its server's."""
    name = f"test_{uuid.uuid4().hex}"
    yield create_database(quiet_server_url, name, template="template")
    drop_database(quiet_server_url, name)


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """A testigo installation of the test's own, on a real PostgreSQL."""
    with Database(database_url, pool_size=20) as database:
        yield database


@pytest.fixture
def world(db: Database) -> World:
    """The installation with short words for what tests do to it."""
    return World(db)


@pytest.fixture(name="server_directory")
def fixture_server_directory() -> Iterator[Path]:
    """A new directory in which a test can run a server of its own."""
    with server_directory() as directory:
        yield directory


@pytest.fixture(scope="session")
def semgrep(run_folder: Path) -> Path:
    """The run's folder of analysers with semgrep in it. A test that uses it is marked `needs_package_index`."""
    return shared_folder(run_folder, "analysers", lambda apart: install("semgrep", apart))
