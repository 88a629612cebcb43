"""What `testigo init` writes runs as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from testigo.cli.init.project import FILES
from tests.cli.conftest import Cli


@pytest.fixture
def project(cli: Cli, tmp_path: Path) -> Path:
    """A new project."""
    folder = tmp_path / "word-shop"
    ran = cli("init", str(folder), "--json")
    assert (ran.status, ran.json) == (0, {"folder": str(folder), "name": "word-shop", "files": list(FILES)})
    assert sorted(each.name for each in folder.iterdir()) == sorted(FILES)
    return folder


def test_its_tests_pass(project: Path) -> None:
    """On an embedded server, with warnings as errors."""
    done = _python(project, "-m", "pytest", "-q", "-W", "error", "-p", "no:randomly")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_its_job_runs(project: Path, database_url: str) -> None:
    """With the worker beside it that its README tells of."""
    command = [sys.executable, "-m", "testigo", "worker", "app:app"]
    with (project / "worker.log").open("w") as log:
        worker = subprocess.Popen(command, cwd=project, env={**os.environ, "TESTIGO_URL": database_url}, stderr=log)
    try:
        done = _python(project, "app.py", TESTIGO_URL=database_url)
    finally:
        worker.terminate()
        worker.wait(60)
    assert done.stdout.splitlines()[-1] == "result    Counted(words=6, most_common='to')", done.stderr


def test_its_files_are_well_formed(project: Path) -> None:
    """For ruff, mypy and whoever reads the project's table."""
    table = tomllib.loads((project / "pyproject.toml").read_text())
    assert (table["project"]["name"], table["tool"]["testigo"]) == ("word-shop", {})
    for check in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict", "app.py"]):
        done = _python(project, "-m", *check)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_overwritten(cli: Cli, tmp_path: Path, file: str) -> None:
    """Where one of the files is there, none is written; also where it is a link to nothing."""
    (tmp_path / file).symlink_to(tmp_path / "nothing")
    ran = cli("init", str(tmp_path))
    assert (ran.status, file in ran.err) == (12, True)
    assert [each.name for each in tmp_path.iterdir()] == [file]


@pytest.mark.parametrize(
    ("folder", "name"), [("My Próject_1", "my-project-1"), ("ナ", "work"), ('a"b\\', "a-b"), ("x" * 200, "x" * 100)]
)
def test_a_project_is_named_after_its_folder(cli: Cli, tmp_path: Path, folder: str, name: str) -> None:
    """In the letters that every tool takes."""
    assert cli("init", str(tmp_path / folder), "--json").json["name"] == name


def test_a_folder_that_cannot_be_made_is_refused(cli: Cli, tmp_path: Path) -> None:
    """With the system's own words."""
    (tmp_path / "file").touch()
    ran = cli("init", str(tmp_path / "file" / "project"))
    assert (ran.status, "Not a directory" in ran.err) == (11, True), ran.err


def test_without_a_folder_it_is_the_one_here(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As people say it after `mkdir` and `cd`."""
    monkeypatch.chdir(tmp_path)
    assert cli("init").status == 0
    assert (tmp_path / "app.py").exists()


def _python(folder: Path, *arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TESTIGO_", "PYTEST_"))}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env={**environment, **given}, capture_output=True, text=True, check=False
    )
