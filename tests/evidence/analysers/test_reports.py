"""A report that is not as its program writes it is refused; one that names another tree's files is, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import EvidenceInvalid
from testigo.evidence.analysers import Ended, Task, analyser, read
from testigo.evidence.beneath import Place
from testigo.evidence.reported import Attached, Reading
from testigo.rules.evidence.finding import FingerprintBy
from testigo.rules.evidence.sealing import Draft, sealed
from tests.evidence.analysers.running import findings, tree, unread
from tests.evidence.reports import result, run, sarif, written

RUNNING = ("ruff", "bandit", "detect-secrets", "semgrep")


def said(
    folder: Path, name: str, report: object, *, status: int = 0, stderr: str = "", files: str = "a.py"
) -> list[Reading]:
    """What the analyser reads from that report."""
    root = tree(folder / "tree", {"a.py": "one\ntwo\nthree\n"})
    about = Task(root, tuple(files.split()), folder)
    ended = Ended(status, written(folder, report, "stdout"), written(folder, stderr.encode(), "stderr"))
    source = analyser(name, apart=folder)
    return list(read(source, about, source.command(about), ended))


def semgrep(path: str = "a.py", line: int = 2, **extra: Any) -> dict[str, Any]:
    """A result as semgrep writes it."""
    return {
        "check_id": "python.rule",
        "path": path,
        "start": {"line": line, "col": 1},
        "end": {"line": line, "col": 4},
        "extra": {"message": "m", "severity": "ERROR", "metadata": {"cwe": "CWE-1", "n": 7}, **extra},
    }


def test_semgrep_is_read_without_what_it_withholds(tmp_path: Path) -> None:
    """A fingerprint for those with an account, and one that results share, are ignored (spec D-24)."""
    withheld = [semgrep(line=1, fingerprint="requires login", lines="requires login")]
    shared = [semgrep(line=2, fingerprint="f"), semgrep(line=3, fingerprint="f")]
    report = {"results": withheld + shared, "errors": [], "paths": {"scanned": ["a.py"]}}
    found = findings(said(tmp_path, "semgrep", report))
    assert [(each.line, each.snippet) for each in found] == [(1, "one"), (2, "two"), (3, "three")]
    assert {each.fingerprint_by for each in found} == {FingerprintBy.COMPUTED}
    assert {each.severity for each in found} == {"high"}
    assert "login" not in str(found)


def test_semgrep_scans_what_it_says_and_fails_on_the_rest(tmp_path: Path) -> None:
    """What it does not list as scanned, and what it had trouble with, was not analysed."""
    errors = [{"path": "b.py", "level": "warn", "message": "partly parsed"}, {"level": "error", "message": "general"}]
    report = {"paths": {"scanned": ["a.py", "b.py"]}, "results": [], "errors": errors}
    found = said(tmp_path, "semgrep", report, files="a.py b.py tests/c.py")
    assert unread(found) == {"b.py": True, "tests/c.py": True}


def test_semgrep_is_told_to_keep_to_itself(tmp_path: Path) -> None:
    """No metrics, no look for a new version, no rules from elsewhere; files are named one by one."""
    root = tree(tmp_path / "tree", {"a.py": "", "tests/b.py": ""})
    command = analyser("semgrep", apart=tmp_path).command(Task(root, ("a.py", "tests/b.py", "gone.py"), tmp_path))
    assert command is not None
    assert {"--metrics=off", "--disable-version-check", "./a.py", "./tests/b.py"} <= set(command.args)
    assert "./gone.py" not in command.args
    [rules] = [each.partition("=")[2] for each in command.args if each.startswith("--config=")]
    assert Path(rules).is_file()


def test_ruff_names_what_it_cannot_decode_on_its_standard_error_alone(tmp_path: Path) -> None:
    """What is not in its report is taken from what it says (spec D-24)."""
    stderr = (
        "warning: Failed to lint sub/b: c.py: stream did not contain valid UTF-8\nwarning: Failed to lint x.py: no\n"
    )
    root = tree(tmp_path / "tree", {"a.py": ""})
    ended = Ended(0, written(tmp_path, [], "stdout"), written(tmp_path, stderr.encode(), "stderr"))
    source = analyser("ruff", apart=tmp_path)
    found = list(source.read(Task(root, ("a.py", "sub/b: c.py"), tmp_path), ended))
    assert unread(found) == {"sub/b: c.py": True}


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("status", [2, -9, 137])
def test_a_program_that_did_not_end_well_proves_nothing(tmp_path: Path, name: str, status: int) -> None:
    """A status that does not stand for a whole report refuses it, whatever is in it."""
    with pytest.raises(EvidenceInvalid) as raised:
        said(tmp_path, name, {"results": []}, status=status)
    assert str(status) in raised.value.message


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize(
    "report", [b"", b"[", b"Traceback (most recent call last):\n", b'{"results": [7], "results": []}']
)
def test_a_report_that_is_no_json_is_refused(tmp_path: Path, name: str, report: bytes) -> None:
    """What was cut off, and what is something else, is refused by the report's name."""
    with pytest.raises(EvidenceInvalid) as raised:
        said(tmp_path, name, report)
    assert name in raised.value.message


OUTSIDE = {
    "ruff": [{"code": "S1", "filename": "/etc/x.py", "location": {}, "end_location": {}, "message": "m"}],
    "bandit": {"errors": [{"filename": "../x.py", "reason": "r"}]},
    "detect-secrets": {"results": {"../x": [{"type": "t", "line_number": 1}]}},
    "semgrep": {"results": [semgrep("/etc/x.py")]},
}


@pytest.mark.parametrize("name", RUNNING)
def test_files_outside_the_tree_are_refused(tmp_path: Path, name: str) -> None:
    """An analyser has nothing to say of what it was not given."""
    with pytest.raises(EvidenceInvalid):
        said(tmp_path, name, OUTSIDE[name])


PLACE = {"row": 2, "column": 1}
USUAL: dict[str, Any] = {
    "ruff": [
        {
            "code": "S1",
            "filename": "a.py",
            "location": PLACE,
            "end_location": PLACE,
            "message": "m",
            "name": "n",
            "url": "u",
        },
        {"code": "E902", "filename": "a.py", "location": PLACE, "end_location": PLACE, "message": "m"},
    ],
    "bandit": {
        "errors": [{"filename": "a.py", "reason": "r"}],
        "results": [
            {
                "filename": "a.py",
                "line_number": 2,
                "line_range": [2, 3],
                "col_offset": 0,
                "end_col_offset": 4,
                "issue_severity": "LOW",
                "issue_confidence": "HIGH",
                "issue_text": "t",
                "issue_cwe": {"id": 7},
                "test_id": "B1",
                "test_name": "n",
                "more_info": "u",
            }
        ],
    },
    "detect-secrets": {"results": {"a.py": [{"type": "Secret Keyword", "line_number": 1}]}},
    "semgrep": {
        "results": [semgrep(fingerprint="f")],
        "errors": [{"path": "a.py", "level": "warn", "message": "m"}],
        "paths": {"scanned": ["a.py"]},
    },
}


def changed(value: Any, odd: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by `odd`, and with each left out."""
    yield odd
    if isinstance(value, dict):
        for name in value:
            yield {each: kept for each, kept in value.items() if each != name}
            for inner in changed(value[name], odd):
                yield {**value, name: inner}
    if isinstance(value, list):
        for at in range(len(value)):
            for inner in changed(value[at], odd):
                yield [*value[:at], inner, *value[at + 1 :]]


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("odd", [None, True, -7, 2**70, 1.5, "", "x\x00", [], {}, [[]], {"a": {}}], ids=repr)
def test_a_report_that_is_written_otherwise_ends_in_readings_or_in_our_error(
    tmp_path: Path, name: str, odd: Any
) -> None:
    """Whichever part of a report is something else, or missing: never another error, and what is read can be sealed."""
    assert said(tmp_path, name, USUAL[name])
    for report in changed(USUAL[name], odd):
        with suppress(EvidenceInvalid):
            sealed(each for each in said(tmp_path, name, report) if isinstance(each, Draft))


def test_any_sarif_file_is_read_by_its_tools_name(tmp_path: Path) -> None:
    """The report is told, and the folder that stands for the tree in it."""
    path = written(tmp_path, sarif(run(result("file:///ci/repo/a.py"))))
    source = analyser("sarif:tool", apart=tmp_path)
    [draft] = read(source, Task(tmp_path, (), tmp_path, {"prefix": "/ci/repo"}, Place(path)), None, None)
    assert isinstance(draft, Draft)
    assert (draft.path, draft.analyser) == ("a.py", "sarif:tool")
    with pytest.raises(EvidenceInvalid, match="not named"):
        list(read(source, Task(tmp_path, (), tmp_path), None, None))


def test_any_cyclonedx_file_is_read_by_its_name(tmp_path: Path) -> None:
    """As Syft writes it, its own path of the tree taken out."""
    syft = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [{"type": "application", "author": "anchore", "name": "syft", "version": "1.20.0"}]
            },
            "component": {"bom-ref": "af63", "type": "file", "name": f"{tmp_path}/requirements.txt"},
        },
        "components": [
            {
                "bom-ref": "pkg:pypi/flask@3.0.0?package-id=1",
                "type": "library",
                "name": "flask",
                "version": "3.0.0",
                "purl": "pkg:pypi/flask@3.0.0",
                "properties": [{"name": "syft:location:0:path", "value": "/requirements.txt"}],
            }
        ],
    }
    path = written(tmp_path, syft, "syft.json")
    source = analyser("cyclonedx", apart=tmp_path)
    [attached] = read(source, Task(tmp_path, (), tmp_path, report=Place(path)), None, None)
    assert isinstance(attached, Attached)
    assert str(tmp_path).encode() not in attached.body
    assert json.loads(attached.body)["metadata"]["component"]["name"] == "requirements.txt"
    with pytest.raises(EvidenceInvalid, match="not named"):
        list(read(source, Task(tmp_path, (), tmp_path), None, None))
