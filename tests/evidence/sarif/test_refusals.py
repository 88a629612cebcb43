"""A SARIF report that is not one, or is too much, is refused with its place and leaves nothing (field case R80)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import testigo.evidence.sarif.heads as heads
from tests.evidence.reports import ROOT, refusal, result, run, sarif, written


@pytest.mark.parametrize(
    ("log", "at"),
    [
        ({}, None),
        ({"version": "2.1.0"}, None),
        ({"runs": []}, None),
        ({"version": "2.0.0", "runs": []}, "/version"),
        ({"version": 2.1, "runs": []}, "/version"),
        ([], None),
        ("text", None),
        ({"version": "2.1.0", "runs": {}}, "/runs"),
        ({"version": "2.1.0", "runs": [[]]}, "/runs/0"),
        ({"version": "2.1.0", "runs": [{"results": {}}]}, "/runs/0/results"),
        ({"version": "2.1.0", "runs": [{"results": [7]}]}, "/runs/0/results/0"),
        ({"version": "2.1.0", "runs": [{"tool": {"driver": {"rules": [{}]}}}]}, "/runs/0/tool/driver/rules/0"),
    ],
)
def test_what_is_no_sarif_is_refused(tmp_path: Path, log: Any, at: str | None) -> None:
    """Another document, another version and another shape are refused where they show."""
    error = refusal(written(tmp_path, log))
    if at is not None:
        assert error.field is not None
        assert error.field.startswith(at)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_report_is_refused_before_its_first_result(tmp_path: Path, share: float) -> None:
    """Half a report is none: it is read to its end before anything of it is given."""
    whole = json.dumps(sarif(run(*(result(line=at + 1) for at in range(50))))).encode()
    error = refusal(written(tmp_path, whole[: int(len(whole) * share)]))
    assert error.code == "EVIDENCE_INVALID"


def test_a_name_twice_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    """Readers disagree on which of two counts, also where nobody looks."""
    text = b'{"version": "2.1.0", "runs": [{"results": [{"message": {"text": "m"}, "fixes": [{"a": 1, "a": 2}]}]}]}'
    assert refusal(written(tmp_path, text)).field == "/runs/0/results/0/fixes/0/a"


def test_what_a_report_may_declare_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, artifacts and runs are held in memory, so there are so many of them at most."""
    monkeypatch.setattr(heads, "KEPT_MAX", 20)
    monkeypatch.setattr(heads, "RUNS_MAX", 3)
    many = [{"location": {"uri": f"{at}.py"}} for at in range(21)]
    assert refusal(written(tmp_path, sarif(run(artifacts=many)))).limit is not None
    rules = [{"id": str(at)} for at in range(11)]
    assert refusal(written(tmp_path, sarif(run(rules=rules), run(rules=rules)))).limit is not None
    assert refusal(written(tmp_path, sarif(*[run()] * 4))).limit == "3 runs"


def test_the_file_is_named_and_the_machine_is_not(tmp_path: Path) -> None:
    """An error says which report it is, not where this machine keeps it."""
    error = refusal(written(tmp_path, b"{"), roots=(ROOT,))
    assert str(tmp_path) not in str(error)
