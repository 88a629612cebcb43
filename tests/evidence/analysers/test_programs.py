"""Real analysers over a real tree: what they find, what they could not read, and nothing of what they must not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testigo.errors import NotFound
from testigo.evidence.analysers import Analyser, analyser, analysers
from testigo.evidence.reported import Attached, Unread
from testigo.rules.evidence.finding import FingerprintBy
from tests.evidence.analysers.running import UNSAFE, findings, readings, task, tree, unread

SECRET = "AKIA" + "QWERTYUIOPASDFGH"

FILES: dict[str, str | bytes] = {
    "a.py": UNSAFE,
    "a dir%#é/b.py": UNSAFE,
    "-dash.py": UNSAFE,
    "tests/t.py": UNSAFE,
    "broken.py": "def broken(:\n",
    "latin.py": b"name = '\xff'\n",
    "keys.py": f"KEY = '{SECRET}'\n",
    "poetry.lock": "hash = 'c5b1d1f0'\n",
    # Settings that would switch every rule off, if a tree could do that.
    "ruff.toml": 'exclude = ["*"]\n',
    ".bandit": "[bandit]\nskips = B101,B404,B602\n",
    # A module that a program would import if it looked into the folder that it runs in.
    "json.py": "raise SystemExit('the tree was imported')\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with something in it for everybody."""
    return tree(tmp_path / "tree", FILES)


def named(name: str, apart: Path) -> Analyser:
    """The analyser of that name."""
    return analyser(name, apart=apart)


@pytest.mark.parametrize(("name", "shell"), [("ruff", "S602"), ("bandit", "B602")])
def test_python_is_analysed_whatever_its_files_are_called(tmp_path: Path, root: Path, name: str, shell: str) -> None:
    """Paths come back canonical, lines with what they say, and files without sense as failures (spec D-24)."""
    about = task(root, tmp_path / "work", *(file for file in FILES if file.endswith(".py")), "gone.py")
    found = readings(named(name, tmp_path), about)
    unsafe = [each for each in findings(found) if each.rule == shell]
    assert {each.path for each in unsafe} == {"-dash.py", "a dir%#é/b.py", "a.py", "tests/t.py"}
    assert {(each.line, each.severity) for each in unsafe} == {(6, "high")}
    assert {each.snippet for each in unsafe} == {"    subprocess.call('ls ' + name, shell=True)"}
    assert {each.fingerprint_by for each in unsafe} == {FingerprintBy.COMPUTED}
    assert unread(found) == {"broken.py": True, "latin.py": True, "gone.py": True}


@pytest.mark.parametrize("name", ["ruff", "bandit"])
def test_lines_that_move_do_not_change_who_a_finding_is(tmp_path: Path, name: str) -> None:
    """The same tree, its lines shifted: the same fingerprints (spec D-18; field case R83)."""
    who = []
    for at, content in enumerate((UNSAFE, "# one\n# two\n\n" + UNSAFE)):
        root = tree(tmp_path / f"tree{at}", {"a.py": content})
        found = readings(named(name, tmp_path), task(root, tmp_path / f"work{at}"))
        who.append({(each.rule, each.fingerprint) for each in findings(found)})
    assert who[0] == who[1] != set()


def test_secrets_are_found_and_not_shown(tmp_path: Path, root: Path) -> None:
    """A finding says that there is a secret and where, with nothing to guess it from; lock files are out of scope."""
    source = named("detect-secrets", tmp_path)
    assert [file for file in FILES if not source.takes(file)] == ["poetry.lock"]
    found = readings(source, task(root, tmp_path / "work", *filter(source.takes, FILES)))
    [aws] = [each for each in findings(found) if each.path == "keys.py" and each.rule == "AWS Access Key"]
    assert (aws.line, aws.severity, aws.snippet) == (1, "high", None)
    report = json.loads((tmp_path / "work" / "stdout").read_text())
    hashes = [each["hashed_secret"] for every in report["results"].values() for each in every]
    assert hashes
    assert not any(SECRET in str(each) or any(digest in str(each) for digest in hashes) for each in found)
    assert unread(found) == {"latin.py": True}


def test_secrets_are_not_verified_by_asking_anybody(tmp_path: Path, root: Path) -> None:
    """No service hears of a secret that was found."""
    command = named("detect-secrets", tmp_path).command(task(root, tmp_path / "work"))
    assert command is not None
    assert "--no-verify" in command.args


def test_a_bill_of_materials_is_the_same_twice(tmp_path: Path) -> None:
    """Pinned requirements give the same bytes, whatever the hour (spec D-15)."""
    root = tree(tmp_path / "tree", {"requirements.txt": "flask==3.0.0\nrich==13.7.0\n"})
    bodies = []
    for at in range(2):
        [attached] = readings(named("cyclonedx-py", tmp_path), task(root, tmp_path / f"work{at}"))
        assert isinstance(attached, Attached)
        bodies.append(attached.body)
    assert bodies[0] == bodies[1]
    assert {each["name"] for each in json.loads(bodies[0])["components"]} == {"flask", "rich"}


@pytest.mark.parametrize("name", ["ruff", "bandit", "detect-secrets", "cyclonedx-py", "semgrep"])
def test_no_files_need_no_program(tmp_path: Path, name: str) -> None:
    """A part without files for an analyser is read as nothing found."""
    root = tree(tmp_path / "tree", {"picture.png": b"\x89PNG"})
    about = task(root, tmp_path / "work")
    source = named(name, tmp_path)
    part = type(about)(about.root, tuple(filter(source.takes, about.files)), about.work)
    assert source.command(part) is None
    assert readings(source, part) == []


def test_versions_are_known_and_what_is_missing_is_said(tmp_path: Path) -> None:
    """Each analyser says its version; one that is not installed says how it would be."""
    known = analysers(tmp_path)
    versions = {name: each.version() for name, each in known.items() if name != "semgrep"}
    assert all(version[0].isdigit() for version in versions.values())
    with pytest.raises(NotFound, match="testigo analyser install semgrep"):
        known["semgrep"].version()
    with pytest.raises(NotFound, match="ruff, bandit"):
        analyser("lint", apart=tmp_path)


@pytest.mark.needs_package_index
def test_semgrep_runs_from_its_own_environment(tmp_path: Path, semgrep: Path) -> None:
    """Installed apart, it finds what our rules describe, in folders that it leaves out by itself, too."""
    source = named("semgrep", semgrep)
    assert source.version()
    root = tree(tmp_path / "tree", {"a.py": UNSAFE, "tests/t.py": UNSAFE})
    found = findings(readings(source, task(root, tmp_path / "work")))
    assert {(each.path, each.rule) for each in found} == {
        ("a.py", "python.shell-of-a-variable"),
        ("tests/t.py", "python.shell-of-a-variable"),
    }


def test_links_are_not_followed_for_lines(tmp_path: Path) -> None:
    """A file exchanged for a link after it was analysed shows nothing of what the link leads to (spec D-15)."""
    root = tree(tmp_path / "tree", {"a.py": UNSAFE})
    tree(tmp_path, {"outside.txt": "the secret of another\n" * 20})
    about = task(root, tmp_path / "work")
    source = named("bandit", tmp_path)
    assert findings(readings(source, about))
    (root / "a.py").unlink()
    (root / "a.py").symlink_to(tmp_path / "outside.txt")
    from testigo.evidence.analysers import Ended

    ended = Ended(1, about.work / "stdout", about.work / "stderr")
    again = list(source.read(about, ended))
    assert "another" not in str(again)
    assert not any(isinstance(each, Unread) for each in again)
