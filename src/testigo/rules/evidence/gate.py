"""Whether a gate opens: what counts, how much of it may, and whether there is evidence enough to say so.

Only complete evidence is judged: where something was not looked at the gate is `incomplete`, whatever was found and
whatever people decided (spec D-21, D-24). It is a third outcome beside how the jobs ended and what the analysis is.
What a store has to know is a count of the findings that are alike (`Tally`), so that all of what counts is said here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.review import Decision, meaning
from testigo.rules.evidence.severity import SEVERITIES, Severity, at_least
from testigo.settings import EVIDENCE

__all__ = ["DEFAULT", "Code", "Evaluation", "Looked", "Policy", "Reason", "Tally", "Verdict", "counts", "evaluate"]

Thresholds = Mapping[Severity, int]
"""How many findings of a severity may count; one without a number is not limited."""


class Verdict(StrEnum):
    """What a gate says."""

    PASSED = "passed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


class Code(StrEnum):
    """Why it does not say `passed`; the codes never change between releases."""

    ANALYSER_MISSING = "ANALYSER_MISSING"
    """It was asked for, and left no result."""
    ANALYSER_FAILED = "ANALYSER_FAILED"
    """It left a result that says it failed."""
    ANALYSER_INCOMPLETE = "ANALYSER_INCOMPLETE"
    """It left a result that says it is not complete."""
    FILES_SKIPPED = "FILES_SKIPPED"
    """It skipped files in scope."""
    FILES_FAILED = "FILES_FAILED"
    """It could not read or analyse files in scope."""
    NOTHING_IN_SCOPE = "NOTHING_IN_SCOPE"
    """No analyser was asked for, or none had anything to look at."""
    THRESHOLD_EXCEEDED = "THRESHOLD_EXCEEDED"
    """More findings count than may."""


class Tally(NamedTuple):
    """How many findings are alike in all that the gate looks at.

    `exempt`: an exemption of their fingerprint is active. `suppressed`: by the source itself. `known`: the baseline
    has their analyser and fingerprint, and accepts them.
    """

    analyser: str
    severity: Severity
    decision: Decision
    exempt: bool
    suppressed: bool
    known: bool
    findings: int


class Looked(NamedTuple):
    """What an analyser that was asked for left behind, over all its parts."""

    outcome: Outcome
    coverage: Coverage


class Reason(NamedTuple):
    """One reason: a code, what it is about, and a sentence for people."""

    code: Code
    analyser: str | None
    severity: Severity | None
    found: int
    allowed: int
    text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What a project's gate lets through.

    `thresholds` limit the findings of all analysers together; an analyser in `by_analyser` is judged by its own
    instead, and does not count towards the others. With `new_only` what the baseline has does not count; without a
    baseline everything is new. With `honour_suppressions` what the source itself suppresses does not count.
    """

    thresholds: Thresholds = field(default_factory=dict)
    by_analyser: Mapping[str, Thresholds] = field(default_factory=dict)
    new_only: bool = False
    honour_suppressions: bool = False

    @classmethod
    def fail_on(cls, least: Severity, *, new_only: bool = False) -> Policy:
        """The policy that lets through no finding that is as bad as `least`."""
        return cls({severity: 0 for severity in SEVERITIES if at_least(severity, least)}, new_only=new_only)

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object."""
        return {
            "thresholds": {str(severity): most for severity, most in self.thresholds.items()},
            "by_analyser": {
                name: {str(severity): most for severity, most in own.items()} for name, own in self.by_analyser.items()
            },
            "new_only": self.new_only,
            "honour_suppressions": self.honour_suppressions,
        }

    def covers(self, other: Policy) -> bool:
        """Whether this lets through no more than the other, baselines aside: what passed it passes that."""
        if self.by_analyser.keys() != other.by_analyser.keys() or self.honour_suppressions > other.honour_suppressions:
            return False
        pairs = [(self.thresholds, other.thresholds)]
        pairs += [(own, other.by_analyser[name]) for name, own in self.by_analyser.items()]
        return all(mine.get(severity, most + 1) <= most for mine, its in pairs for severity, most in its.items())

    @classmethod
    def from_json(cls, value: object) -> Policy:
        """The policy that a JSON object is; a member that is missing has its default. Raises `Invalid` by field."""
        members = _object(value, "policy")
        if unknown := sorted(str(name) for name in members.keys() - set(cls.__dataclass_fields__)):
            raise Invalid("no such member is known", field=f"policy.{unknown[0][:40]}")
        own = _object(members.get("by_analyser", {}), "policy.by_analyser")
        for name in ("new_only", "honour_suppressions"):
            fields.flag(members.get(name, False), field=f"policy.{name}")
        return cls(
            _thresholds(members.get("thresholds", {}), "policy.thresholds"),
            {
                fields.name(name, field="policy.by_analyser"): _thresholds(most, f"policy.by_analyser.{name}")
                for name, most in own.items()
            },
            members.get("new_only", False),
            members.get("honour_suppressions", False),
        )


DEFAULT = Policy.fail_on(Severity.HIGH)
"""The gate of a project for which nobody set one: nothing critical, nothing high."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the gate says, why, and how many findings of each severity count."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    counted: Mapping[Severity, int]


def counts(tally: Tally, policy: Policy) -> bool:
    """Whether findings like these count for the gate (spec D-16, D-23)."""
    return (
        meaning(tally.decision).counts
        and not tally.exempt
        and not (policy.new_only and tally.known)
        and not (policy.honour_suppressions and tally.suppressed)
    )


def evaluate(policy: Policy, looked: Mapping[str, Looked | None], tallies: Iterable[Tally]) -> Evaluation:
    """What the gate says of an analysis.

    `looked` has every analyser that was asked for, None for one without a result. Reasons come in the order of
    analysers, and severities the worst first.
    """
    counted: Counter[tuple[str | None, Severity]] = Counter()
    totals: Counter[Severity] = Counter()
    for tally in tallies:
        if counts(tally, policy):
            counted[tally.analyser if tally.analyser in policy.by_analyser else None, tally.severity] += tally.findings
            totals[tally.severity] += tally.findings
    by_severity = {severity: totals[severity] for severity in SEVERITIES}
    if gaps := _gaps(looked):
        return Evaluation(Verdict.INCOMPLETE, tuple(gaps), by_severity)
    exceeded = _exceeded(policy, counted)
    return Evaluation(Verdict.FAILED if exceeded else Verdict.PASSED, tuple(exceeded), by_severity)


def _gaps(looked: Mapping[str, Looked | None]) -> list[Reason]:
    gaps = []
    for analyser, left in sorted(looked.items()):
        if left is None:
            gaps.append(_gap(Code.ANALYSER_MISSING, analyser, 0, f"{analyser} left no result"))
            continue
        if left.outcome is Outcome.FAILED:
            gaps.append(_gap(Code.ANALYSER_FAILED, analyser, 0, f"{analyser} failed"))
        elif left.outcome is Outcome.INCOMPLETE:
            gaps.append(_gap(Code.ANALYSER_INCOMPLETE, analyser, 0, f"{analyser} did not complete its work"))
        for code, files, did in (
            (Code.FILES_SKIPPED, left.coverage.skipped_total, "skipped"),
            (Code.FILES_FAILED, left.coverage.failed_total, "could not analyse"),
        ):
            if files:
                text = f"{analyser} {did} {files:,} of {left.coverage.in_scope:,} files"
                gaps.append(_gap(code, analyser, files, text))
    if not any(left and left.coverage.in_scope for left in looked.values()) and not gaps:
        gaps.append(_gap(Code.NOTHING_IN_SCOPE, None, 0, "nothing was there to look at"))
    return gaps[: EVIDENCE.reasons_max]


def _gap(code: Code, analyser: str | None, files: int, text: str) -> Reason:
    return Reason(code, analyser, None, files, 0, text)


def _exceeded(policy: Policy, counted: Mapping[tuple[str | None, Severity], int]) -> list[Reason]:
    reasons = []
    limits: list[tuple[str | None, Thresholds]] = [(None, policy.thresholds), *sorted(policy.by_analyser.items())]
    for analyser, thresholds in limits:
        for severity in SEVERITIES:
            found, allowed = counted.get((analyser, severity), 0), thresholds.get(severity)
            if allowed is not None and found > allowed:
                text = _too_many(analyser, severity, found, allowed)
                reasons.append(Reason(Code.THRESHOLD_EXCEEDED, analyser, severity, found, allowed, text))
    return reasons[: EVIDENCE.reasons_max]


def _too_many(analyser: str | None, severity: Severity, found: int, allowed: int) -> str:
    by = f" by {analyser}" if analyser else ""
    count = f"finding{by} counts" if found == 1 else f"findings{by} count"
    return f"{found:,} {severity} {count}; {f'at most {allowed:,}' if allowed else 'none'} may pass"


def _object(value: object, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid("an object is needed", field=at)
    return value


def _thresholds(value: object, at: str) -> dict[Severity, int]:
    return {
        fields.member(severity, Severity, field=at): fields.whole(
            most, field=f"{at}.{severity}", low=0, high=fields.INTEGER_MAX
        )
        for severity, most in _object(value, at).items()
    }
