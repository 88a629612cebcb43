"""The gate opens on whole evidence with little enough in it, and says exactly why it does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.gate import DEFAULT, Code, Looked, Policy, Tally, Verdict, counts, evaluate
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity

WHOLE = Looked(Outcome.COMPLETE, Coverage(3))
LOOKED: dict[str, Looked | None] = {"bandit": WHOLE, "ruff": WHOLE}
HIGH = Tally("ruff", Severity.HIGH, Decision.OPEN, False, False, False, 1)

thresholds = st.dictionaries(st.sampled_from(Severity), st.integers(0, 5))
policies = st.builds(
    Policy, thresholds, st.dictionaries(st.sampled_from(["ruff", "bandit"]), thresholds), st.booleans(), st.booleans()
)
tallies = st.builds(
    Tally,
    st.sampled_from(["ruff", "bandit"]),
    st.sampled_from(Severity),
    st.sampled_from(Decision),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)


@pytest.mark.parametrize(
    ("decision", "exempt", "suppressed", "known", "new_only", "honour"),
    [*product(Decision, *[(False, True)] * 5)],
)
def test_what_counts(
    decision: Decision, exempt: bool, suppressed: bool, known: bool, new_only: bool, honour: bool
) -> None:
    """Open and needs_review do, unless exempt, or not new where that is asked, or honoured (spec D-16, D-23)."""
    tally = Tally("ruff", Severity.LOW, decision, exempt, suppressed, known, 1)
    expected = decision in ("open", "needs_review") and not (exempt or (known and new_only) or (suppressed and honour))
    assert counts(tally, Policy(new_only=new_only, honour_suppressions=honour)) is expected


@given(policies, st.lists(tallies, max_size=12))
def test_a_whole_analysis_passes_or_fails_by_its_thresholds(policy: Policy, found: list[Tally]) -> None:
    """No limit is exceeded exactly when it passes, and each reason tells its numbers; order does not matter."""
    evaluation = evaluate(policy, LOOKED, found)
    counted = [tally for tally in found if counts(tally, policy)]
    expected = {
        (own, severity): (number, allowed)
        for own, limits in ((None, policy.thresholds), *policy.by_analyser.items())
        for severity, allowed in limits.items()
        if (
            number := sum(
                tally.findings
                for tally in counted
                if tally.severity is severity
                and (tally.analyser == own if own else tally.analyser not in policy.by_analyser)
            )
        )
        > allowed
    }
    assert evaluation.verdict is (Verdict.FAILED if expected else Verdict.PASSED)
    assert {(why.analyser, why.severity): (why.found, why.allowed) for why in evaluation.reasons} == expected
    assert {why.code for why in evaluation.reasons} <= {Code.THRESHOLD_EXCEEDED}
    assert sum(evaluation.counted.values()) == sum(tally.findings for tally in counted)
    assert evaluate(policy, LOOKED, found[::-1]) == evaluation
    assert evaluate(Policy.from_json(policy.to_json()), LOOKED, found) == evaluation


@pytest.mark.parametrize(
    ("looked", "codes"),
    [
        ({"ruff": None}, ["ANALYSER_MISSING"]),
        ({"ruff": WHOLE, "bandit": None}, ["ANALYSER_MISSING"]),
        ({"ruff": Looked(Outcome.FAILED, Coverage(3))}, ["ANALYSER_FAILED"]),
        ({"ruff": Looked(Outcome.INCOMPLETE, Coverage(3))}, ["ANALYSER_INCOMPLETE"]),
        ({"ruff": Looked(Outcome.COMPLETE, Coverage(3, 1))}, ["FILES_SKIPPED"]),
        ({"ruff": Looked(Outcome.COMPLETE, Coverage(3, 0, 1))}, ["FILES_FAILED"]),
        (
            {"ruff": Looked(Outcome.FAILED, Coverage(3, 1, 2)), "a": None},
            ["ANALYSER_MISSING", "ANALYSER_FAILED", "FILES_SKIPPED", "FILES_FAILED"],
        ),
        ({"ruff": Looked(Outcome.COMPLETE, Coverage(0))}, ["NOTHING_IN_SCOPE"]),
        ({}, ["NOTHING_IN_SCOPE"]),
    ],
)
@pytest.mark.parametrize("found", [[], [HIGH]])
def test_what_was_not_looked_at_is_never_passed(
    looked: dict[str, Looked | None], codes: list[str], found: list[Tally]
) -> None:
    """Incomplete goes before failed and passed, whatever was found or decided, and all gaps are told (D-21, D-24)."""
    evaluation = evaluate(DEFAULT, looked, found)
    assert evaluation.verdict is Verdict.INCOMPLETE
    assert [str(why.code) for why in evaluation.reasons] == codes
    assert all(why.text for why in evaluation.reasons)


def test_one_analyser_may_have_nothing_to_look_at() -> None:
    """A tree without files of its language is whole, as long as another had some."""
    looked = {"bandit": Looked(Outcome.COMPLETE, Coverage(0)), "ruff": WHOLE}
    assert evaluate(DEFAULT, looked, []).verdict is Verdict.PASSED


@pytest.mark.parametrize("decision", Decision)
def test_decisions_do_not_repair_coverage(decision: Decision) -> None:
    """Whatever people decide about what was found, what was not looked at stays so (spec D-21)."""
    looked = {"ruff": Looked(Outcome.COMPLETE, Coverage(3, 0, 1))}
    assert evaluate(DEFAULT, looked, [HIGH._replace(decision=decision)]).verdict is Verdict.INCOMPLETE


@pytest.mark.parametrize("least", Severity)
def test_fail_on_lets_nothing_through_that_is_as_bad(least: Severity) -> None:
    """One finding at or above the severity fails, and any number below does not."""
    ranks = list(Severity)
    for severity in Severity:
        verdict = evaluate(Policy.fail_on(least), LOOKED, [HIGH._replace(severity=severity, findings=9)]).verdict
        assert verdict is (Verdict.FAILED if ranks.index(severity) <= ranks.index(least) else Verdict.PASSED)


def test_an_analyser_with_thresholds_of_its_own_is_judged_by_them_alone() -> None:
    """What one tool may do is not taken from the others."""
    policy = replace(DEFAULT, by_analyser={"ruff": {Severity.HIGH: 2}})
    assert evaluate(policy, LOOKED, [HIGH._replace(findings=2)]).verdict is Verdict.PASSED
    failed = evaluate(policy, LOOKED, [HIGH._replace(findings=3), HIGH._replace(analyser="bandit")])
    assert [why.text for why in failed.reasons] == [
        "1 high finding counts; none may pass",
        "3 high findings by ruff count; at most 2 may pass",
    ]


def test_the_codes_are_published() -> None:
    """They never change between releases."""
    assert " ".join(Code) == (
        "ANALYSER_MISSING ANALYSER_FAILED ANALYSER_INCOMPLETE FILES_SKIPPED FILES_FAILED NOTHING_IN_SCOPE"
        " THRESHOLD_EXCEEDED"
    )


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "policy"),
        ({"threshold": {}}, "policy.threshold"),
        ({"thresholds": []}, "policy.thresholds"),
        ({"thresholds": {"HIGH": 0}}, "policy.thresholds"),
        ({"thresholds": {"high": -1}}, "policy.thresholds.high"),
        ({"thresholds": {"high": True}}, "policy.thresholds.high"),
        ({"thresholds": {"high": 1.5}}, "policy.thresholds.high"),
        ({"by_analyser": {"": {}}}, "policy.by_analyser"),
        ({"by_analyser": {"ruff": 3}}, "policy.by_analyser.ruff"),
        ({"by_analyser": {"ruff": {"high": None}}}, "policy.by_analyser.ruff.high"),
        ({"new_only": 1}, "policy.new_only"),
        ({"honour_suppressions": "yes"}, "policy.honour_suppressions"),
    ],
)
def test_what_is_no_policy_is_refused_by_field(value: Any, field: str) -> None:
    """A gate is set to exactly what was said."""
    with pytest.raises(Invalid) as caught:
        Policy.from_json(value)
    assert caught.value.field == field


STRICT, LAX = Policy.fail_on(Severity.LOW), Policy.fail_on(Severity.HIGH)


@pytest.mark.parametrize(
    ("mine", "its", "covers"),
    [
        (LAX, LAX, True),
        (STRICT, LAX, True),
        (LAX, STRICT, False),
        (Policy(), Policy(), True),
        (LAX, Policy(), True),
        (Policy(), LAX, False),
        (Policy({Severity.HIGH: 1}), Policy({Severity.HIGH: 2}), True),
        (Policy({Severity.HIGH: 3}), Policy({Severity.HIGH: 2}), False),
        (Policy.fail_on(Severity.HIGH, new_only=True), LAX, True),
        (Policy(LAX.thresholds, honour_suppressions=True), LAX, False),
        (LAX, Policy(LAX.thresholds, honour_suppressions=True), True),
        (Policy(LAX.thresholds, {"ruff": {}}), LAX, False),
        (LAX, Policy(LAX.thresholds, {"ruff": {}}), False),
        (Policy({}, {"ruff": {Severity.LOW: 1}}), Policy({}, {"ruff": {Severity.LOW: 1}}), True),
        (Policy({}, {"ruff": {Severity.LOW: 2}}), Policy({}, {"ruff": {Severity.LOW: 1}}), False),
    ],
)
def test_a_policy_covers_those_that_let_through_as_much(mine: Policy, its: Policy, *, covers: bool) -> None:
    """What passed it would pass those; where the counts are grouped otherwise, nobody knows (spec D-23)."""
    assert mine.covers(its) is covers


def test_a_policy_without_members_limits_nothing() -> None:
    """And the default one lets nothing through that is critical or high."""
    assert Policy.from_json({}) == Policy()
    assert Policy.from_json(DEFAULT.to_json()) == DEFAULT
    assert DEFAULT.thresholds == {Severity.CRITICAL: 0, Severity.HIGH: 0}
