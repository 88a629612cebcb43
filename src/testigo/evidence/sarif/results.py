"""One result of a run: what it says, with a stated default for each thing that it leaves out (field case R78).

- level: the result's, else its rule's, else `warning`; `none` where the result's kind is no failure. A word that the
  standard does not know is taken for a severity.
- severity: `security-severity` of the result, else of the rule; else a property of either that names one; else
  the level's.
- message: its text, else the rule's string that it names, else the rule's description, else the rule's id.
- place: the first location; none where there is none.
- not results at all: those of kind `pass` and `notApplicable`, and those that the baseline had and the run has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from testigo.evidence.sarif.loose import child, items, text, whole
from testigo.evidence.sarif.places import Place, Places
from testigo.evidence.sarif.rules import Rule, Rules
from testigo.rules.evidence import severity
from testigo.rules.evidence.sealing import Draft
from testigo.rules.evidence.severity import Level, Severity

__all__ = ["KEPT", "result"]

KEPT = frozenset(
    {
        "ruleId", "ruleIndex", "rule", "kind", "level", "message", "partialFingerprints", "fingerprints",
        "suppressions", "properties", "baselineState", "rank", "analysisTarget", "provenance",
    }
)  # fmt: skip
"""The members of a result that are built, beside its first location."""

LEVELS = frozenset(Level)
SEVERITY_PROPERTIES = ("issue_severity", "severity", "problem.severity", "cvssv3_baseSeverity", "cvssv2_severity")

_PLACEHOLDER = re.compile(r"\{(\d{1,3})\}")


def result(
    found: Mapping[str, Any], rules: Rules, places: Places, *, analyser: str, levels: Sequence[Mapping[str, str]] = ()
) -> Draft | None:
    """The result that `found` holds (members of `KEPT`, and `location`), or None for what is none.

    `levels` are those that each invocation of the run was configured to give to rules.

    Raises EvidenceInvalid, without a place in the file, for a location that is refused.
    """
    kind = found.get("kind")
    if kind in ("pass", "notApplicable") or found.get("baselineState") == "absent":
        return None
    rule_id, rule = rules.of(found)
    physical = child(child(found, "location"), "physicalLocation")
    place = places.of(child(physical, "artifactLocation") or child(found, "analysisTarget"))
    region = child(physical, "region")
    configured = _configured(found, levels)
    level = _level(found, rule, configured.get(rule.id if rule else rule_id))
    return Draft(
        analyser=analyser,
        rule=rule_id,
        rule_name=rule.name if rule else None,
        severity=_severity(found, rule, level),
        level=level,
        message=_message(child(found, "message"), rules, rule) or rule_id,
        path=place.path,
        line=whole(region.get("startLine")),
        end_line=whole(region.get("endLine")),
        column=whole(region.get("startColumn")),
        end_column=whole(region.get("endColumn")),
        snippet=text(child(region, "snippet").get("text")),
        suppressed=_suppressed(found),
        metadata=_metadata(found, rule, place),
        parts=_parts(found),
    )


def _configured(found: Mapping[str, Any], levels: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """What the invocation that the result is of was configured to give: the one that it names, or the only one."""
    number = whole(child(found, "provenance").get("invocationIndex"))
    if number is None or number < 0:
        number = 0 if len(levels) == 1 else len(levels)
    return levels[number] if number < len(levels) else {}


def _level(found: Mapping[str, Any], rule: Rule | None, configured: str | None) -> Level:
    said = text(found.get("level"))
    if said is not None and said.lower() not in LEVELS and (word := severity.read(said)):
        return severity.level_of(word)
    if said is not None and said.lower() in LEVELS:
        return severity.read_level(said)
    if found.get("kind") in ("open", "review", "informational"):
        return Level.NONE
    return severity.read_level(configured or (rule.level if rule else None))


def _severity(found: Mapping[str, Any], rule: Rule | None, level: Level) -> Severity:
    both = (child(found, "properties"), rule.properties if rule else {})
    for properties in both:
        if read := severity.read(properties.get("security-severity")):
            return read
    words = [found.get("level"), *(properties.get(name) for properties in both for name in SEVERITY_PROPERTIES)]
    for word in words:
        if isinstance(word, str) and word.strip().lower() not in LEVELS and (read := severity.read(word)):
            return read
    return severity.of_level(level)


def _message(message: Mapping[str, Any], rules: Rules, rule: Rule | None) -> str | None:
    said = text(message.get("text"))
    named = text(message.get("id"))
    if said is None and named is not None:
        said = (rule.strings.get(named) if rule else None) or rules.driver.strings.get(named)
    said = said or text(message.get("markdown"))
    if said is None:
        return rule.described if rule else None
    arguments = items(message.get("arguments"))

    def argument(placeholder: re.Match[str]) -> str:
        number = int(placeholder[1])
        return str(arguments[number]) if number < len(arguments) else placeholder[0]

    return _PLACEHOLDER.sub(argument, said) if arguments else said


def _parts(found: Mapping[str, Any]) -> dict[str, str]:
    """The tool's own identity of the result: its fingerprints, else its partial ones."""
    for member in ("fingerprints", "partialFingerprints"):
        given = {name: value for name, value in child(found, member).items() if text(value)}
        if given:
            return given
    return {}


def _suppressed(found: Mapping[str, Any]) -> bool:
    """Whether the source or its readers suppressed the result, and nobody has that under review or rejected it."""
    suppressions = [each for each in items(found.get("suppressions")) if isinstance(each, dict)]
    statuses = {each.get("status") or each.get("state") or "accepted" for each in suppressions}
    return statuses == {"accepted"}


def _metadata(found: Mapping[str, Any], rule: Rule | None, place: Place) -> dict[str, str]:
    """What else is known of the result and its rule, as texts."""
    every: list[tuple[str, object]] = [
        ("location", place.elsewhere),
        ("kind", found.get("kind")),
        ("baseline", found.get("baselineState")),
        ("rank", found.get("rank")),
        ("help", rule.help_uri if rule else None),
    ]
    for suppression in items(found.get("suppressions"))[:1]:
        if isinstance(suppression, dict):
            every += [(f"suppression.{name}", suppression.get(name)) for name in ("kind", "status", "justification")]
    every += [(f"rule.{name}", value) for name, value in (rule.properties if rule else {}).items()]
    every += list(child(found, "properties").items())
    kept: dict[str, str] = {}
    for name, value in every:
        if isinstance(value, list):
            value = ", ".join(each for each in value if isinstance(each, str))
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            continue
        kept.setdefault(name, str(value))
    return kept
