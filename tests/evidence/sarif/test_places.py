"""A place in a SARIF report becomes one canonical path inside the tree, or is refused by name (field case R81)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evidence.reports import ROOT, drafts, refusal, run, sarif, written

BASES = {
    "SRC": {"uri": "src/", "uriBaseId": "ROOT"},
    "ROOT": {"uri": f"file://{ROOT}/"},
    "OTHER": {"uri": "file:///home/somebody/checkout"},
    "INNER": {"uri": "lib/", "uriBaseId": "OTHER"},
    "HOST": {"uri": "file://build.example/work/"},
    "NOWHERE": {},
    "UP": {"uri": "../"},
    "A": {"uri": "a/", "uriBaseId": "B"},
    "B": {"uri": "b/", "uriBaseId": "A"},
    "SELF": {"uri": "s/", "uriBaseId": "SELF"},
}


def report(folder: Path, location: dict[str, Any], **members: Any) -> Path:
    """A report with one result at that artifactLocation."""
    found = {"message": {"text": "m"}, "locations": [{"physicalLocation": {"artifactLocation": location}}]}
    return written(folder, sarif(run(found, originalUriBaseIds=BASES, **members)))


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ({"uri": "a.py"}, "a.py"),
        ({"uri": "a%20dir/%23b%25.py"}, "a dir/#b%.py"),
        ({"uri": "a dir/#b.py"}, "a dir/#b.py"),
        ({"uri": "100%/x.py"}, "100%/x.py"),
        ({"uri": "ñandú/é.py"}, "ñandú/é.py"),
        ({"uri": "src\\win\\a.c"}, "src/win/a.c"),
        ({"uri": "./x/../y//z.py"}, "y/z.py"),
        ({"uri": f"file://{ROOT}/x.py"}, "x.py"),
        ({"uri": f"file:///{ROOT}/x.py"}, "x.py"),
        ({"uri": f"file://localhost{ROOT}/x.py"}, "x.py"),
        ({"uri": f"{ROOT}/x.py"}, "x.py"),
        ({"uri": "x.py", "uriBaseId": "SRC"}, "src/x.py"),
        ({"uri": "x.py", "uriBaseId": "ROOT"}, "x.py"),
        ({"uri": "x.py", "uriBaseId": "%UNDECLARED%"}, "x.py"),
        ({"uri": "x.py", "uriBaseId": "OTHER"}, "x.py"),
        ({"uri": "x.py", "uriBaseId": "INNER"}, "lib/x.py"),
        ({"uri": "x.py", "uriBaseId": "HOST"}, "x.py"),
        ({"uri": "x.py", "uriBaseId": "NOWHERE"}, "x.py"),
        ({"uri": f"file://{ROOT}/x.py", "uriBaseId": "A"}, "x.py"),
        ({"index": 1}, "src/two.py"),
        ({"uri": "x.py", "index": 1}, "x.py"),
        ({"index": 7}, None),
        ({"uri": "./"}, None),
        ({"uri": "https://example.com/x.py"}, None),
        ({"uri": "jar:file:/x.jar!/a.class"}, None),
        ({"uri": ""}, None),
        ({}, None),
    ],
)
def test_a_place_has_one_canonical_path(tmp_path: Path, location: dict[str, Any], path: str | None) -> None:
    """Escapes, separators, base ids and indices lead to one path, or to none where no file is meant."""
    artifacts = [{"location": {"uri": "one.py"}}, {"location": {"uri": "two.py", "uriBaseId": "SRC"}}]
    [draft] = drafts(report(tmp_path, location, artifacts=artifacts))
    assert draft.path == path
    assert ("location" in draft.metadata) is (path is None and bool(location.get("uri")))


@pytest.mark.parametrize(
    "location",
    [
        {"uri": "../x.py"},
        {"uri": "a/../../x.py"},
        {"uri": "%2e%2e/x.py"},
        {"uri": "/etc/passwd"},
        {"uri": "file:///etc/passwd"},
        {"uri": "file:///C:/code/x.c"},
        {"uri": "C:\\code\\x.c"},
        {"uri": "file://build.example/x.py"},
        {"uri": "\\\\share\\x.py"},
        {"uri": "a%00b.py"},
        {"uri": "%ff.py"},
        {"uri": "x.py", "uriBaseId": "UP"},
        {"uri": "x.py", "uriBaseId": "A"},
        {"uri": "x.py", "uriBaseId": "SELF"},
        {"uri": "x" * 5000},
    ],
)
def test_what_leads_out_or_round_is_refused(tmp_path: Path, location: dict[str, Any]) -> None:
    """A place outside the tree, on another machine or in a circle refuses the report, naming the result."""
    assert refusal(report(tmp_path, location)).field == "/runs/0/results/0"


@pytest.mark.parametrize(
    ("uri", "prefix"),
    [("file:///home/ci/repo/src/x.py", "/home/ci/repo"), ("file:///C:/code/src/x.py", "C:/code")],
)
def test_a_folder_may_stand_for_the_tree(tmp_path: Path, uri: str, prefix: str) -> None:
    """A report from elsewhere is read with the folder that the tree had there."""
    path = report(tmp_path, {"uri": uri})
    assert "prefix" in refusal(path).remedy
    assert [draft.path for draft in drafts(path, roots=(ROOT, prefix))] == ["src/x.py"]
