"""Nothing in a tree makes an analyser silent: not where a file lies, not settings beside it, not a comment in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.evidence.analysers import Analyser, analyser
from testigo.evidence.reported import Attached, Trouble, Unread
from testigo.rules.evidence.finding import Finding
from tests.evidence.analysers.running import UNSAFE, findings, readings, task, tree, unread

SECRET = "AKIA" + "QWERTYUIOPASDFGH"
ALL_OF_IT = "import subprocess\n\n\ndef call(name):\n    subprocess.call('ls ' + name, shell=True)"

# Each is left out by one of the programs, if it walks a tree or is not told otherwise.
PLACES = (
    ".github/a.py", ".tox/a.py", ".venv/lib/a.py", "CVS/a.py", "a.egg/a.py", "build/a.py", "dist/a.py",
    "node_modules/a.py", "site-packages/a.py", "x/__pycache__/a.py",
)  # fmt: skip
SETTINGS = {
    ".bandit": "[bandit]\nskips = B101,B404,B602\nexclude = /\n",
    ".gitignore": "*\n",
    ".secrets.baseline": "{}\n",
    ".semgrepignore": "*\n",
    "bandit.yaml": "exclude_dirs: ['/']\n",
    "pyproject.toml": "[tool.ruff]\nexclude = ['*']\n[tool.ruff.lint.per-file-ignores]\n'*' = ['ALL']\n"
    "[tool.bandit]\nexclude_dirs = ['/']\n",
    "ruff.toml": "exclude = ['*']\nforce-exclude = true\n",
    "setup.cfg": "[bandit]\nexclude = /\n",
}

SHELL = {"ruff": "S602", "bandit": "B602", "semgrep": "python.shell-of-a-variable"}


@pytest.fixture(
    params=["ruff", "bandit", pytest.param("semgrep", marks=pytest.mark.needs_package_index)],
)
def reader(request: pytest.FixtureRequest) -> Analyser:
    """Each analyser that reads Python."""
    apart: Path = request.getfixturevalue("semgrep") if request.param == "semgrep" else Path()
    return analyser(request.param, apart=apart)


def shells(reader: Analyser, root: Path, work: Path, *files: str) -> list[Finding]:
    """What it finds of commands that a shell runs."""
    found = findings(readings(reader, task(root, work, *files)))
    return [each for each in found if each.rule == SHELL[reader.name]]


def test_where_a_file_lies_and_what_lies_beside_it_hide_nothing(tmp_path: Path, reader: Analyser) -> None:
    """What was asked for is analysed, in whatever folder, and with whatever settings around it (spec D-24)."""
    root = tree(tmp_path / "tree", {**dict.fromkeys(PLACES, UNSAFE), **SETTINGS})
    assert {each.path for each in shells(reader, root, tmp_path / "work", *PLACES)} == set(PLACES)


COMMENTS = {
    "ruff": (
        ("  # noqa", True),
        ("  # NOQA:S602", True),
        ("  # noqa: E501, S602 because", True),
        ("  # ruff: ignore[S602]", True),
        ("  # noqa: E501", False),
        ("  # noqa: because", False),
        ("", False),
    ),
    "bandit": (
        ("  # nosec", True),
        ("  #nosec B602", True),
        ("  # nosec: B101,subprocess_popen_with_shell_equals_true", True),
        ("  # nosec B101", False),
        ("", False),
    ),
    "semgrep": (
        ("  # nosem", True),
        ("  # nosemgrep: python.shell-of-a-variable", True),
        ("  # nosemgrep: python.another", False),
        ("", False),
    ),
}


def test_a_comment_hides_nothing_and_is_told(tmp_path: Path, reader: Analyser) -> None:
    """What the source asks not to be told of is found like anything else, and says that it asks (spec D-14)."""
    comments = COMMENTS[reader.name]
    files = {f"{n}.py": f"{ALL_OF_IT}{comment}\n" for n, (comment, _) in enumerate(comments)}
    found = shells(reader, tree(tmp_path / "tree", files), tmp_path / "work")
    assert {each.path: each.suppressed for each in found} == {f"{n}.py": asks for n, (_, asks) in enumerate(comments)}
    assert all((each.metadata.get("suppression.kind") == "inSource") is each.suppressed for each in found)


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("# ruff: noqa", True),
        ("# flake8: noqa", True),
        ("# ruff: noqa: E501 S602", True),
        ("# ruff: noqa: E501", False),
        ("# ruff: disable[S602]", False),  # it is about what comes after it
    ],
)
def test_a_comment_about_a_whole_file_hides_nothing(tmp_path: Path, line: str, *, asks: bool) -> None:
    """ruff knows comments that are about a file, wherever in it they stand."""
    root = tree(tmp_path / "tree", {"a.py": f"{UNSAFE}{line}\n"})
    [found] = shells(analyser("ruff", apart=tmp_path), root, tmp_path / "work")
    assert found.suppressed is asks


def test_a_secret_that_is_allowed_by_a_comment_is_found(tmp_path: Path) -> None:
    """As a line's own comment, and as one on the line before."""
    files = {
        "own.txt": f"k = '{SECRET}'  # pragma: allowlist secret\n",
        "own.yaml": f"k: '{SECRET}'  # pragma: whitelist secret\n",
        "next.js": f"// pragma: allowlist nextline secret\nk = '{SECRET}'\n",
        "plain.css": f"/* k = '{SECRET}' */\n",
        "plain.lock": f"k = '{SECRET}'\n",
        "plain.svg": f"<!-- k = '{SECRET}' -->\n",
        "swagger/plain.txt": f"k = '{SECRET}'\n",
    }
    root = tree(tmp_path / "tree", files)
    found = readings(analyser("detect-secrets", apart=tmp_path), task(root, tmp_path / "work"))
    keys = [each for each in findings(found) if each.rule == "AWS Access Key"]
    assert {each.path: each.suppressed for each in keys} == {
        name: not Path(name).stem.startswith("plain") for name in files
    }
    assert unread(found) == {}


def test_a_file_that_bandit_does_not_tell_of_was_not_analysed(tmp_path: Path) -> None:
    """Its report names every file that it looked at; one that is missing there is no file without findings."""
    from testigo.evidence.analysers import Ended

    root = tree(tmp_path / "tree", {"a.py": "", "b.py": ""})
    about = task(root, tmp_path / "work")
    (about.work / "stdout").write_text('{"errors": [], "metrics": {"./a.py": {}, "_totals": {}}, "results": []}')
    (about.work / "stderr").touch()
    ended = Ended(0, about.work / "stdout", about.work / "stderr")
    assert unread(list(analyser("bandit", apart=tmp_path).read(about, ended))) == {"b.py": True}


def test_requirements_that_are_in_no_bill_are_told(tmp_path: Path) -> None:
    """The bill is made of one file of requirements; the others are in scope, and not in it (spec D-24)."""
    root = tree(tmp_path / "tree", {"requirements.txt": "flask==3.0.0\n", "deep/requirements.txt": "x==1\n"})
    found = readings(analyser("cyclonedx-py", apart=tmp_path), task(root, tmp_path / "work"))
    assert unread(found) == {"deep/requirements.txt": False}
    assert sum(1 for each in found if not isinstance(each, Unread)) == 1


def test_a_bill_is_made_of_nothing_outside_its_file_and_says_what_it_lacks(tmp_path: Path) -> None:
    """A tree names what it likes, by whatever way; what is not in the bill is no silence (spec D-15, D-24)."""
    (tmp_path / "outside.txt").write_text("hunter2hunter2\n", "utf-8")
    text = f"flask==3.0.0\n-r {tmp_path}/outside.txt\n--req=../outside.txt\n-c ../outside.txt\n-r gone.txt\n==\n"
    root = tree(tmp_path / "tree", {"requirements.txt": text})
    bill, lacks = readings(analyser("cyclonedx-py", apart=tmp_path), task(root, tmp_path / "work"))
    assert isinstance(bill, Attached)
    assert isinstance(lacks, Trouble)
    assert b"flask" in bill.body
    assert b"hunter2" not in bill.body
    assert lacks.reason == "what these lines of requirements.txt say is not in the bill: 2, 3, 4, 5, 6"
