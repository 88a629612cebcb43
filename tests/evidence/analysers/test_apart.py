"""A program that is installed apart has an environment of its own, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.errors import Conflict, Invalid
from testigo.evidence.analysers import analyser, apart
from tests.evidence.analysers.running import UNSAFE, findings, readings, task, tree


def test_the_folder_is_the_users_own_unless_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable names it; else it is where programs keep their data."""
    monkeypatch.setenv(apart.FOLDER_VARIABLE, str(tmp_path / "named"))
    assert apart.folder() == tmp_path / "named"
    monkeypatch.delenv(apart.FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert apart.folder() == tmp_path / "testigo" / "analysers"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert apart.folder().parts[-4:] == (".local", "share", "testigo", "analysers")


def test_only_what_is_known_is_installed(tmp_path: Path) -> None:
    """A name is no distribution to be fetched."""
    with pytest.raises(Invalid):
        apart.install("requests", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_installation_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without its program would look like an installed one."""
    monkeypatch.setattr(apart, "INSTALLABLE", frozenset({"testigo-has-no-such-analyser"}))
    monkeypatch.setattr(apart, "PIP", (*apart.PIP, "--no-index", "--find-links", str(tmp_path / "nothing")))
    with pytest.raises(Conflict):
        apart.install("testigo-has-no-such-analyser", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs_package_index
def test_semgrep_runs_from_its_own_environment(tmp_path: Path, semgrep: Path) -> None:
    """Installed apart, it finds what our rules describe, in folders that it leaves out by itself, too."""
    source = analyser("semgrep", apart=semgrep)
    assert source.version()
    root = tree(tmp_path / "tree", {"a.py": UNSAFE, "tests/t.py": UNSAFE})
    found = findings(readings(source, task(root, tmp_path / "work")))
    assert {(each.path, each.rule) for each in found} == {
        ("a.py", "python.shell-of-a-variable"),
        ("tests/t.py", "python.shell-of-a-variable"),
    }
