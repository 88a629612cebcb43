"""The same tree gives the same fingerprints, however results are ordered and lines have moved (spec D-18, D-24)."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testigo.rules.evidence.finding import FingerprintBy
from testigo.rules.evidence.sealing import sealed
from tests.evidence.reports import drafts, result, run, sarif, written

RESULTS = [
    result(uri, line, ruleId=rule, message={"text": f"said in line {line}"}, partialFingerprints=parts)
    for uri, line, rule, parts in (
        ("a.py", 3, "R1", {}),
        ("a.py", 9, "R1", {}),
        ("a.py", 9, "R2", {}),
        ("b.py", 3, "R1", {"hash": "one"}),
        ("b.py", 4, "R1", {"hash": "shared"}),
        ("b.py", 8, "R2", {"hash": "shared"}),
        ("c.py", 8, "R2", {"hash": "shared"}),
    )
]


def fingerprints(folder: Path, results: list[dict[str, Any]]) -> list[tuple[str, str | None, str]]:
    """Who the findings of these results are."""
    findings = sealed(drafts(written(folder, sarif(run(*results)))))
    return sorted((each.rule, each.path, each.fingerprint) for each in findings)


def at(found: dict[str, Any]) -> dict[str, Any]:
    """The region of a result."""
    region: dict[str, Any] = found["locations"][0]["physicalLocation"]["region"]
    return region


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), shift=st.integers(0, 10_000))
def test_shuffled_results_and_shifted_lines_are_the_same_findings(tmp_path: Path, seed: int, shift: int) -> None:
    """Order and line numbers are not what a finding is known by (field case R83)."""
    changed = copy.deepcopy(RESULTS)
    for found in changed:
        at(found)["startLine"] += shift
        found["message"]["text"] = f"said in line {at(found)['startLine']}"
    random.Random(seed).shuffle(changed)
    assert fingerprints(tmp_path, changed) == fingerprints(tmp_path, RESULTS)


def test_a_fingerprint_that_differing_results_share_is_ignored(tmp_path: Path) -> None:
    """What several results have in common identifies none of them; it is computed anew (spec D-24)."""
    findings = sealed(drafts(written(tmp_path, sarif(run(*RESULTS)))))
    by_tool = {(each.path, each.line) for each in findings if each.fingerprint_by is FingerprintBy.TOOL}
    assert ("b.py", 3) in by_tool
    same_everywhere = [result("a.py", line, fingerprints={"id": "requires login"}) for line in (1, 2)]
    findings = sealed(drafts(written(tmp_path, sarif(run(*same_everywhere)))))
    assert {each.fingerprint_by for each in findings} == {FingerprintBy.COMPUTED}
    assert len({each.fingerprint for each in findings}) == len(findings)


@pytest.mark.parametrize("times", [1, 3])
def test_the_same_report_again_is_the_same(tmp_path: Path, times: int) -> None:
    """Reading decides nothing by chance."""
    assert [fingerprints(tmp_path, RESULTS) for _ in range(times)] == [fingerprints(tmp_path, RESULTS)] * times
