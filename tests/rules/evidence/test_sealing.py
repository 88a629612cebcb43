"""The same tree has the same findings: shuffled, shifted, said twice, and whatever hostile text comes in."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.sealing import UNNAMED, Draft, redacted, sealed
from testigo.rules.evidence.severity import Level, Severity
from testigo.settings import EVIDENCE

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ASSERT = Draft("ruff", "S101", Severity.LOW, Level.NOTE, "Use of assert", path="a.py", line=3, snippet="assert x")

any_text = st.text(st.characters(), max_size=30)
positions = st.none() | st.integers(-2, 12)
drafts = st.builds(
    Draft,
    analyser=st.sampled_from(["ruff", "bandit"]),
    rule=st.sampled_from(["S101", "E501", ""]) | any_text,
    severity=st.sampled_from(Severity),
    level=st.sampled_from(Level),
    message=st.sampled_from(["Line too long (130 > 120)", "Line too long (99 > 88)", ""]) | any_text,
    rule_name=st.none() | any_text,
    path=st.sampled_from([None, "a.py", "b.py"]),
    line=positions,
    end_line=positions,
    column=positions,
    end_column=positions,
    snippet=st.sampled_from([None, "x = 1", "  x  =  1\n"]) | any_text,
    suppressed=st.booleans(),
    metadata=st.dictionaries(any_text, any_text, max_size=3),
    parts=st.sampled_from([{}, {"hash": "1"}, {"hash": "2"}]),
)


def fingerprints(findings: list[Finding]) -> list[tuple[str, str]]:
    """Who the findings are."""
    return sorted((finding.analyser, finding.fingerprint) for finding in findings)


@given(st.lists(drafts, max_size=8), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(said: list[Draft], chance: Any) -> None:
    """Shuffled and said twice, a result is the same, each finding fit, in order and there once (field case R83)."""
    findings = sealed(said)
    again = said + said
    chance.shuffle(again)
    assert sealed(again) == findings
    assert findings == sorted(findings, key=Finding.order)
    assert len(set(fingerprints(findings))) == len(findings)
    for finding in findings:
        assert Finding.from_json(finding.to_json()) == finding
        assert redacted(finding) == finding


@given(st.lists(drafts, max_size=8), st.integers(1, 200))
def test_shifted_lines_keep_every_identity(said: list[Draft], lines: int) -> None:
    """Lines that are put in above change no fingerprint (field case R83)."""
    placed = [replace(draft, line=abs(draft.line or 1) + 1, end_line=None, end_column=None) for draft in said]
    shifted = [replace(draft, line=(draft.line or 0) + lines) for draft in placed]
    assert fingerprints(sealed(shifted)) == fingerprints(sealed(placed))


def test_equal_lines_are_told_apart_in_their_order() -> None:
    """Three equal lines are three findings, and the first two stay who they are when the third goes (R83)."""
    three = [replace(ASSERT, line=line) for line in (9, 30, 100)]
    chance = Random(1)
    all_three = sealed(chance.sample(three, 3))
    assert [finding.line for finding in all_three] == [9, 30, 100]
    assert fingerprints(sealed(three[:2])) == sorted(fingerprints(all_three[:2]))


def test_a_tools_own_fingerprint_is_taken() -> None:
    """It holds although the line says something else, and says where it comes from (spec D-14)."""
    (first,) = sealed([replace(ASSERT, parts={"hash": "1"})])
    (edited,) = sealed([replace(ASSERT, snippet="assert y", message="other", line=8, parts={"hash": "1"})])
    assert first.fingerprint == edited.fingerprint
    assert first.fingerprint_by is FingerprintBy.TOOL


def test_a_fingerprint_that_differing_results_share_is_computed_anew() -> None:
    """What two findings share names neither of them; a third that has its own keeps it (spec D-24)."""
    shared = {"hash": "requires login"}
    findings = sealed(
        [
            replace(ASSERT, parts=shared),
            replace(ASSERT, line=7, snippet="assert y", parts=shared),
            replace(ASSERT, line=9, snippet="assert z", parts={"hash": "own"}),
        ]
    )
    assert [finding.fingerprint_by for finding in findings] == ["computed", "computed", "tool"]
    alone = sealed([replace(ASSERT, snippet="assert y")])
    assert findings[1].fingerprint == alone[0].fingerprint


def test_no_secret_passes_in_any_field() -> None:
    """Not in the rule, the names, the path, the text, the metadata, nor told by the fingerprint (R76, spec D-14)."""
    said = Draft(
        "ruff",
        f"rule {SECRET}",
        Severity.HIGH,
        Level.ERROR,
        f"found {SECRET}",
        rule_name=f"name {SECRET}",
        path=f"src/{SECRET}/a.py",
        snippet=f'a = "{SECRET[:20]}" \\\n    "{SECRET[20:]}"',
        metadata={"url": f"https://user:{SECRET}@example.org", SECRET: "x", "password": "plain words"},
        parts={"line": SECRET},
    )
    (finding,) = sealed([said])
    text = finding.canonical().decode()
    assert SECRET not in text
    assert SECRET[20:] not in text
    assert "plain words" not in text
    (other,) = sealed([replace(said, parts={"line": SECRET.replace("a1", "z9")})])
    assert other.fingerprint == finding.fingerprint  # it is no hash of the secret


@pytest.mark.parametrize("field", ["rule", "rule_name", "message", "snippet"])
@pytest.mark.parametrize("end", ["", "...", " " * 8])
def test_a_token_that_a_border_cuts_stays_in_no_field(field: str, end: str) -> None:
    """Each text ends where it ends, whatever others are looked at together with it (spec D-14)."""
    given_so: dict[str, Any] = {field: f"x({SECRET[:14]}{end}"}
    (finding,) = sealed([replace(ASSERT, metadata={"a": "b"}, **given_so)])
    assert SECRET[:14] not in finding.canonical().decode()
    assert SECRET[:14] not in redacted(replace(finding, **given_so)).canonical().decode()


def test_a_secret_is_redacted_before_text_is_cut() -> None:
    """The cut goes through no secret that it would hide (spec D-14)."""
    text = "x " * (EVIDENCE.message_bytes_max // 2 - 40) + SECRET + " y" * 1000
    (finding,) = sealed([replace(ASSERT, message=text)])
    assert SECRET[:12] not in finding.message
    assert len(finding.message.encode()) <= EVIDENCE.message_bytes_max


def test_once_more_before_insertion() -> None:
    """What another implementation sealed is redacted when it comes in, and keeps its identity (spec D-14)."""
    (finding,) = sealed([ASSERT])
    careless = replace(finding, snippet=f"x = '{SECRET}'", metadata={"a": SECRET})
    clean = redacted(careless)
    assert SECRET not in clean.canonical().decode()
    assert clean.fingerprint == careless.fingerprint
    assert redacted(finding) is finding


@settings(max_examples=25)
@given(st.sampled_from(['"', "\n\\", "\x00", "😀", "é", "a"]), st.integers(20_000, 70_000))
def test_megabytes_become_a_finding_within_its_limits(letter: str, size: int) -> None:
    """However large and hostile, it is cut and not refused (field case R45)."""
    text = letter * size
    metadata = {f"{letter}{n}": text for n in range(40)}
    (finding,) = sealed([replace(ASSERT, rule=text, rule_name=text, message=text, snippet=text, metadata=metadata)])
    assert len(finding.canonical()) <= EVIDENCE.finding_bytes_max


def test_what_is_not_said_has_its_default() -> None:
    """A finding without a rule, a message or sensible lines is still one (field case R78)."""
    said = Draft("sarif", " ", Severity.LOW, Level.NOTE, "", line=0, column=7, end_line=-1, snippet=" \n")
    (finding,) = sealed([said])
    assert (finding.rule, finding.message, finding.snippet) == (UNNAMED, UNNAMED, None)
    assert (finding.line, finding.end_line, finding.column, finding.end_column) == (None, None, None, None)
