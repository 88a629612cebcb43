"""The published findings of an analysis as SARIF 2.1.0: a run for each analyser that was asked for.

What the source suppresses is suppressed `inSource`; what people decided not to regard, `external` with their
reason. Files that an analyser failed on are notifications, and a part that left no result is an invocation that was
not successful, so that missing coverage is no silence (spec D-21, D-24).
A finding's fingerprint is there as `testigo/v1`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from testigo.evidence.exports.collected import Collected
from testigo.evidence.model import FindingView, PartView
from testigo.rules.evidence.coverage import Outcome, Uncovered
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.paths import to_uri
from testigo.rules.evidence.review import meaning
from testigo.rules.evidence.severity import Level, Severity

__all__ = ["FINGERPRINT", "SCHEMA", "sarif"]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "testigo/v1"
ROOT = "SRCROOT"

_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "2.0",
    Severity.INFO: "0.0",
}
"""A number in the middle of what each severity is read from (`severity.read`)."""


def sarif(collected: Collected) -> Iterator[str]:
    """The text of the log, in pieces; one run per analyser, in the order of their names."""
    parts: dict[str, list[PartView]] = {name: [] for name in collected.detail.view.analysers}
    for part in collected.detail.parts:
        parts.setdefault(part.analyser, []).append(part)
    yield f'{{"$schema":{_text(SCHEMA)},"version":"2.1.0","runs":['
    for at, name in enumerate(sorted(parts)):
        yield "," if at else ""
        yield from _run(collected, name, parts[name])
    yield "]}\n"


def _run(collected: Collected, name: str, parts: list[PartView]) -> Iterator[str]:
    """One run: its results first, for only then its rules are known."""
    rules: dict[tuple[str, str | None], int] = {}
    described: list[dict[str, Any]] = []
    yield '{"results":['
    for at, view in enumerate(collected.findings(name)):
        rule = view.finding.rule, view.finding.rule_name
        if rule not in rules:
            rules[rule] = len(rules)
            described.append(_rule(*rule))
        yield ("," if at else "") + _text(_result(view, rules[rule]))
    driver: dict[str, Any] = {"name": name, "rules": described}
    if versions := sorted({part.analyser_version for part in parts if part.analyser_version}):
        driver["version"] = ", ".join(versions)
    rest = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{collected.detail.view.project}/{name}/{collected.detail.view.id}"},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the source that was analysed."}}},
        "invocations": [_invocation(part) for part in parts] or [{"executionSuccessful": False}],
        "properties": _about(collected),
    }
    yield "]," + _text(rest)[1:]


def _about(collected: Collected) -> dict[str, Any]:
    view = collected.detail.view
    return {
        "testigo/analysis": view.id,
        "testigo/revision": view.revision,
        "testigo/state": view.state,
        "testigo/gate": collected.detail.gate.verdict,
    }


def _invocation(part: PartView) -> dict[str, Any]:
    coverage = part.coverage
    told: dict[str, Any] = {"executionSuccessful": part.outcome not in (None, Outcome.FAILED)}
    if part.reasons:
        told["exitCodeDescription"] = "; ".join(part.reasons)
    if coverage is not None and (coverage.failed or coverage.skipped):
        told["toolExecutionNotifications"] = [
            *(_notification(each, "error") for each in coverage.failed),
            *(_notification(each, "note") for each in coverage.skipped),
        ]
    return told


def _notification(lost: Uncovered, level: str) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": _artifact(lost.path)}}
    return {"level": level, "message": {"text": lost.reason or "not analysed"}, "locations": [place]}


def _rule(rule: str, name: str | None) -> dict[str, Any]:
    return {"id": rule} | ({} if name is None else {"name": name})


def _result(view: FindingView, rule: int) -> dict[str, Any]:
    finding = view.finding
    told: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": finding.message},
        "fingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": _properties(view),
    }
    if finding.level is Level.NONE:
        told["kind"] = "informational"  # what is a failure has a level (SARIF 2.1.0, 3.27.10)
    if (place := _place(finding)) is not None:
        told["locations"] = [{"physicalLocation": place}]
    if suppressions := _suppressions(view):
        told["suppressions"] = suppressions
    return told


def _properties(view: FindingView) -> dict[str, Any]:
    finding = view.finding
    told: dict[str, Any] = {
        **finding.metadata,
        "security-severity": _SCORES[finding.severity],
        "testigo/finding": view.id,
        "testigo/severity": finding.severity,
        "testigo/decision": view.decision,
        "testigo/revision": view.review.revision,
        "testigo/known": view.known,
        "testigo/exempt": view.exempt,
    }
    if view.review.reason:
        told["testigo/reason"] = view.review.reason
    if finding.snippet is not None and finding.line is None:
        told["testigo/snippet"] = finding.snippet
    return told


def _place(finding: Finding) -> dict[str, Any] | None:
    """Where it is; a snippet needs a line to belong to."""
    if finding.path is None and finding.line is None:
        return None
    place: dict[str, Any] = {"artifactLocation": {} if finding.path is None else _artifact(finding.path)}
    numbers = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    region: dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}
    if finding.line is not None and finding.snippet is not None:
        region["snippet"] = {"text": finding.snippet}
    return place | ({"region": region} if region else {})


def _artifact(path: str) -> dict[str, str]:
    return {"uri": to_uri(path), "uriBaseId": ROOT}


def _suppressions(view: FindingView) -> list[Mapping[str, str]]:
    made: list[Mapping[str, str]] = []
    if view.finding.suppressed:
        made.append({"kind": "inSource", "status": "accepted"})
    if meaning(view.decision).suppresses:
        made.append({"kind": "external", "status": "accepted", "justification": view.review.reason})
    return made


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
