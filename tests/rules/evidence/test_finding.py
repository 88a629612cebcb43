"""What comes over the wire as a finding is one, to the letter, or refused by the name of the member."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import rfc8785

from testigo.errors import EvidenceInvalid
from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.severity import Level, Severity
from testigo.settings import EVIDENCE

FULL = Finding(
    analyser="ruff",
    rule="S101",
    rule_name="assert",
    severity=Severity.LOW,
    level=Level.NOTE,
    path="src/café.py",
    line=3,
    end_line=4,
    column=5,
    end_column=2,
    message="Use of `assert` detected",
    snippet="    assert x\n\ty = 1",
    fingerprint="sha256:" + "0" * 64,
    fingerprint_by=FingerprintBy.COMPUTED,
    suppressed=True,
    metadata={"url": "https://example.org", "é": ""},
)
BARE = Finding("osv", "CVE-1", Severity.HIGH, Level.ERROR, "vulnerable", "sha256:" + "a" * 64, FingerprintBy.TOOL)


@pytest.mark.parametrize("finding", [FULL, BARE])
def test_a_finding_survives_the_wire(finding: Finding) -> None:
    """Canonical bytes are RFC 8785, and what is read from them is the same value (spec D-14)."""
    form = finding.canonical()
    assert form == rfc8785.dumps(json.loads(form))
    assert Finding.from_json(json.loads(form)) == finding
    assert Finding.from_json(json.loads(form)).canonical() == form


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("analyser", ""),
        ("analyser", "a" * 201),
        ("rule", None),
        ("rule", "a\nb"),
        ("rule", " a"),
        ("rule", "r" * 501),
        ("rule_name", ""),
        ("severity", "HIGH"),
        ("severity", 3),
        ("level", "fail"),
        ("path", ""),
        ("path", "/etc/passwd"),
        ("path", "a/../b"),
        ("path", "a\\..\\b/../c"),
        ("line", 0),
        ("line", 2**31),
        ("line", True),
        ("line", 3.0),
        ("line", "3"),
        ("line", None),
        ("end_line", 2),
        ("column", 0),
        ("end_column", -1),
        ("message", ""),
        ("message", None),
        ("message", "a\x00b"),
        ("message", "\ud800"),
        ("message", "é" * 8193),
        ("snippet", "a\x1b[31m"),
        ("snippet", 7),
        ("fingerprint", "sha256:" + "0" * 63),
        ("fingerprint", "SHA256:" + "0" * 64),
        ("fingerprint", None),
        ("fingerprint_by", "guess"),
        ("suppressed", 1),
        ("metadata", []),
        ("metadata", {str(n): "" for n in range(33)}),
        ("metadata", {"": "x"}),
        ("metadata", {"a": "x" * 2049}),
        ("metadata", {"a": 1}),
    ],
)
def test_each_member_is_checked(member: str, value: Any) -> None:
    """A value of another type, form or size is refused naming the member (spec D-07, D-14)."""
    with pytest.raises(EvidenceInvalid) as caught:
        Finding.from_json({**FULL.to_json(), member: value})
    assert caught.value.field is not None
    assert caught.value.field.split(".")[0] == member


@pytest.mark.parametrize("member", FULL.to_json())
def test_no_member_may_be_missing(member: str) -> None:
    """A finding has all its members, null ones included (spec D-07)."""
    told = FULL.to_json()
    del told[member]
    with pytest.raises(EvidenceInvalid) as caught:
        Finding.from_json(told)
    assert caught.value.field == member


@pytest.mark.parametrize("value", [{**FULL.to_json(), "extra": 1}, [], None, "x", {}])
def test_nothing_else_is_a_finding(value: object) -> None:
    """Neither an object with more members nor what is no object (spec D-07)."""
    with pytest.raises(EvidenceInvalid):
        Finding.from_json(value)


def test_an_end_belongs_to_a_beginning() -> None:
    """Places that cannot be are refused; a column may be smaller on a later line."""
    FULL.check()
    for odd in (
        replace(FULL, column=None),
        replace(FULL, end_line=3),
        replace(FULL, end_line=None),
        replace(BARE, column=1),
        replace(BARE, end_line=1),
    ):
        with pytest.raises(EvidenceInvalid):
            odd.check()


def test_the_whole_is_bounded() -> None:
    """Members within their limits may still be too much together (spec D-14)."""
    large = replace(FULL, message='"' * EVIDENCE.message_bytes_max, snippet='"' * EVIDENCE.snippet_bytes_max)
    large.check()
    with pytest.raises(EvidenceInvalid) as caught:
        large.canonical()
    assert caught.value.limit == "65536 bytes"


def test_findings_are_ordered_by_place_then_rule_then_fingerprint() -> None:
    """Text by code points, lines as numbers, and what has no place first (spec D-07)."""
    ordered = [
        BARE,
        replace(FULL, path="a", line=9),
        replace(FULL, path="a", line=10, column=2),
        replace(FULL, path="a", line=10, column=10),
        replace(FULL, path="a", line=10, column=10, rule="S102"),
        replace(FULL, path="a", line=10, column=10, rule="S102", fingerprint="sha256:" + "1" * 64),
        replace(FULL, path="b", line=1),
        replace(FULL, path="\uffff"),
        replace(FULL, path="\U00010000"),
    ]
    assert sorted([ordered[-1], *ordered[:-1]], key=Finding.order) == ordered
