"""What was not looked at is counted and named, and never taken for clean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import EvidenceInvalid
from testigo.rules.evidence.coverage import Coverage, Uncovered, together
from testigo.settings import EVIDENCE

paths = st.sampled_from([f"{name}.py" for name in "abcdef"])
reasons = st.dictionaries(paths, st.text(max_size=20), max_size=6)


@given(st.sets(paths), reasons, reasons)
def test_the_files_add_up(scope: set[str], skipped: dict[str, str], failed: dict[str, str]) -> None:
    """Scope is what was analysed, skipped or failed; each file is one of them, and the wire keeps it (spec D-24)."""
    coverage = Coverage.of(scope, skipped=skipped, failed=failed)
    assert coverage.in_scope == len(scope)
    assert coverage.analysed == len(scope - set(skipped) - set(failed))
    assert coverage.whole == (coverage.analysed == coverage.in_scope)
    assert [one.path for one in coverage.failed] == sorted(scope & set(failed))
    assert [one.path for one in coverage.skipped] == sorted((scope & set(skipped)) - set(failed))
    assert all(one.reason for one in (*coverage.skipped, *coverage.failed))
    assert Coverage.from_json(coverage.to_json()) == coverage


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_parts_make_the_whole(files: list[tuple[bool, bool]]) -> None:
    """However the files were split among jobs, the analyser's coverage is the same (spec D-24)."""
    named = {f"{n:02}.py": did for n, did in enumerate(files)}
    skipped = {path: "skipped" for path, (skips, _) in named.items() if skips}
    failed = {path: "failed" for path, (_, fails) in named.items() if fails}
    parts = [Coverage.of([path], skipped=skipped, failed=failed) for path in reversed(named)]
    assert together(parts) == Coverage.of(named, skipped=skipped, failed=failed)


def test_many_are_counted_and_a_thousand_named() -> None:
    """The list is bounded, and the count is not (spec D-24)."""
    scope = [f"{n:05}.py" for n in range(1_200)]
    coverage = Coverage.of(scope, skipped={}, failed=dict.fromkeys(scope, "broken"))
    assert coverage.failed_total == 1_200
    assert [one.path for one in coverage.failed] == scope[: EVIDENCE.uncovered_max]
    assert Coverage.from_json(coverage.to_json()) == coverage
    both = together([coverage, Coverage.of(["0.py"], skipped={}, failed={"0.py": "x"})])
    assert (both.failed_total, len(both.failed), both.failed[0].path) == (1_201, 1_000, "0.py")


def test_reasons_are_fit_short_and_without_secrets() -> None:
    """They come from a tool's stderr (spec D-14; field cases R45, R76)."""
    secret = "AKIAIOSFODNN7EXAMPLE"
    why = f"\x1b[31mcannot read\n{secret} " + "x" * 5_000
    coverage = Coverage.of(["a.py"], skipped={"a.py": why}, failed={})
    (one,) = coverage.skipped
    assert secret not in one.reason
    assert "\n" not in one.reason
    assert "\x1b" not in one.reason
    assert len(one.reason.encode()) <= 400


GOOD = Coverage(5, 1, 1, (Uncovered("a.py", "binary"),), (Uncovered("b.py", "syntax"),)).to_json()


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("in_scope", 6, "coverage.analysed"),
        ("in_scope", -1, "coverage.in_scope"),
        ("analysed", True, "coverage.analysed"),
        ("skipped_total", 2, "coverage.analysed"),
        ("failed_total", None, "coverage.failed_total"),
        ("skipped", [], "coverage.skipped"),
        ("skipped", "a.py", "coverage.skipped"),
        ("skipped", [{"path": "a.py"}], "coverage.skipped[0]"),
        ("skipped", [{"path": "../a.py", "reason": "x"}], "coverage.skipped[0].path"),
        ("failed", [{"path": "a.py", "reason": ""}], "coverage.failed[0].reason"),
        ("failed", [{"path": "a.py", "reason": "\x00"}], "coverage.failed[0].reason"),
        ("failed", [{"path": p, "reason": "x"} for p in "ba"], "coverage.failed"),
        ("failed", [{"path": "a", "reason": "x"}] * 1_001, "coverage.failed"),
        ("extra", 1, "coverage"),
    ],
)
def test_a_coverage_that_lies_is_refused(member: str, value: Any, field: str) -> None:
    """Sums, lists, order and forms are checked, and the member is named (spec D-07, D-24)."""
    assert Coverage.from_json(GOOD).to_json() == GOOD
    with pytest.raises(EvidenceInvalid) as caught:
        Coverage.from_json({**GOOD, member: value})
    assert caught.value.field == field
