"""What the guides show is what happens: their blocks are files, and run as they are written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testigo import Database
from testigo.authority.actions import JobId
from testigo.authority.read.details import job as read_job
from testigo.authority.read.jobs import jobs as read_jobs
from testigo.configuration import installation, worker_settings
from tests.worker.kit import await_that, children_of

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(?:python|toml)\n# (\S+)\n(.*?)```", flags=re.DOTALL)
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

ON_OUR_SERVER = """
import pytest

pytest_plugins = ["testigo.testing.fixtures"]


@pytest.fixture(scope="session")
def testigo_server():
    return {url!r}
"""


def test_the_tests_of_the_testing_guide_pass(tmp_path: Path) -> None:
    """With our fixtures, on an embedded server, in a process of their own."""
    _write("how-to/testing-jobs.md", tmp_path)
    assert "5 passed" in _tested(tmp_path)


@pytest.mark.parametrize("page", ["flask", "sqlalchemy", "celery", "rq", "time-limits", "secrets", "analysers"])
def test_the_tests_of_a_guide_pass(page: str, fresh_database: str, tmp_path: Path) -> None:
    """Each guide that shows code of its own shows a test of it, which passes as it is written."""
    _write(f"how-to/{page}.md", tmp_path)
    (tmp_path / "conftest.py").write_text(ON_OUR_SERVER.format(url=fresh_database))
    _tested(tmp_path)


def test_a_guide_that_shows_a_test_says_how_its_fixture_is_set_up() -> None:
    """Whoever copies it has no other way to know: without that, pytest finds no such fixture."""
    texts = {page.stem: page.read_text("utf-8") for page in (ROOT / "docs/how-to").glob("*.md")}
    shown = {name for name, text in texts.items() if "(testigo: Trial" in text} - {"testing-jobs"}
    assert {"flask", "rq"} <= shown
    assert not {name for name in shown if "(testing-jobs.md)" not in texts[name]}


@pytest.mark.parametrize("page", ["fastapi", "django"])
def test_what_a_guide_shows_of_an_example_stands_there(page: str) -> None:
    """Each block is a part of the file that it names; the examples themselves run in tests/contrib."""
    blocks = BLOCK.findall((ROOT / "docs/how-to" / f"{page}.md").read_text("utf-8"))
    assert blocks
    for name, block in blocks:
        assert block.strip() in (ROOT / name).read_text("utf-8"), f"{page}: {name} is shown otherwise"


def test_a_timer_makes_one_job_by_python_and_by_the_shell(database_url: str, tmp_path: Path) -> None:
    """Run twice, and once more by the command line, the occasion has one job."""
    page = _write("how-to/cron.md", tmp_path)
    (script,) = re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    environment = {**os.environ, "TESTIGO_URL": database_url}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    commands = [[sys.executable, "nightly.py"], [sys.executable, "nightly.py"], ["sh", "-ec", script]]
    told = []
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    with Database(database_url) as db:
        (job,) = db.run(read_jobs).items
    assert told == [f"{job.id}\n"] * 3


def test_the_first_job_survives_the_kill_that_the_tutorial_tells_of(database_url: str, tmp_path: Path) -> None:
    """Its worker is killed with its runners in the middle; started again, it brings the result that is shown."""
    page = _write("tutorial/first-job.md", tmp_path)
    (shown,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    environment = {**os.environ, "TESTIGO_URL": database_url, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "order.py"]
    with Database(database_url) as db, _started(command, tmp_path, environment) as order:
        assert order.stdout is not None
        found = ID.search(order.stdout.readline())
        assert found is not None
        job_id = JobId(found.group())
        with _worker(tmp_path, environment):
            await_that(lambda: db.run(read_job, job_id).checkpoint_bytes, "the first checkpoint")
        with _worker(tmp_path, environment):
            assert order.stdout.read() == shown


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("settings", {"slots": 20, "drain_seconds": 60.0, "runner_memory_bytes_max": 500_000_000}),
        (
            "workers",
            {"runner_jobs_max": 10_000, "runner_age_seconds_max": 86_400.0, "runner_memory_bytes_max": 800_000_000},
        ),
    ],
)
def test_the_file_of_a_guide_is_read(
    page: str, expected: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its settings is known, and counts."""
    _write(f"how-to/{page}.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("TESTIGO_URL", "TESTIGO_SCHEMA"):
        monkeypatch.delenv(name, raising=False)
    if page == "settings":
        found = installation()
        assert (found.url, found.schema) == ("postgresql://shop@db.internal/shop", "work")
    settings = worker_settings()
    assert {name: getattr(settings, name) for name in expected} == expected


def _write(page: str, folder: Path) -> str:
    """Write the files of a guide's blocks, of which those of one name are parts; returns the page."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    for name, block in BLOCK.findall(text):
        with (folder / name).open("a") as file:
            file.write(block)
    return text


def _tested(folder: Path) -> str:
    """What pytest says of the tests in a folder, all of which pass."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TESTIGO_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "-W", "error", str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def _worker(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A worker on the guide's application; in the end it is killed, and its runners with it."""
    command = [sys.executable, "-m", "testigo", "worker", "shop:app"]
    with _started(command, folder, environment) as process:
        yield
        for pid in (process.pid, *children_of(process.pid)):
            with suppress(ProcessLookupError):  # a runner dies with its keeper
                os.kill(pid, signal.SIGKILL)


@contextmanager
def _started(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the test; what it says on stderr goes into a file beside it."""
    log = (folder / f"{command[-1]}.log").open("a")
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    with log, process:
        try:
            yield process
        finally:
            process.kill()
