"""Seven decisions, each at any time, at the revision that was seen, and advice that decides nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from testigo.errors import Invalid, RevisionMismatch
from testigo.rules.evidence.review import DECISIONS, NEW, Advice, Decision, Review, advise, decide, meaning

D_16 = {
    "open": "counts",
    "needs_review": "counts",
    "gate_exempt": "reason accepts",
    "accepted_risk": "reason accepts",
    "ignore": "suppresses reason accepts",
    "false_positive": "suppresses reason accepts",
    "fixed": "suppresses reason",
}
"""The table of spec D-16, written a second time; `fixed` accepts nothing, as D-18 has it."""


def test_the_table_is_that_of_the_spec() -> None:
    """What counts, what suppresses and what needs a reason (spec D-16)."""
    told = {
        str(row.decision): " ".join(
            word
            for word, holds in (
                ("counts", row.counts),
                ("suppresses", row.suppresses),
                ("reason", row.needs_reason),
                ("accepts", row.accepts),
            )
            if holds
        )
        for row in DECISIONS
    }
    assert told == D_16
    assert [row.decision for row in DECISIONS] == list(Decision)
    assert all(meaning(row.decision) is row for row in DECISIONS)


def test_a_new_finding_is_open_at_revision_one() -> None:
    """It inherits no decision (spec D-16, D-18)."""
    assert Review(Decision.OPEN, "", 1, None) == NEW


@pytest.mark.parametrize(("before", "after"), [*product(Decision, Decision)])
def test_each_decision_may_follow_each(before: Decision, after: Decision) -> None:
    """Also itself: it is a decision, and counts as one (spec D-16)."""
    review = Review(before, "because", 7)
    decided = decide(review, 7, after, " a reason \n")
    assert decided == Review(after, "a reason", 8)
    with pytest.raises(RevisionMismatch):
        decide(decided, 7, before, "a reason")


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("reason", ["", "  \n"])
def test_an_exclusion_needs_a_reason(decision: Decision, reason: str) -> None:
    """The five demand one that is not blank, the two do not (spec D-16)."""
    if not meaning(decision).needs_reason:
        assert decide(NEW, 1, decision, reason).reason == ""
        return
    with pytest.raises(Invalid) as caught:
        decide(NEW, 1, decision, reason)
    assert caught.value.field == "reason"


def test_whoever_is_late_is_told_what_was_decided() -> None:
    """The second of two people on one finding loses nothing, and sees the first one's decision (spec D-17)."""
    first = decide(NEW, 1, Decision.FALSE_POSITIVE, "it is a test")
    with pytest.raises(RevisionMismatch) as caught:
        decide(first, 1, Decision.ACCEPTED_RISK, "until spring")
    assert caught.value.facts == {"decision": "false_positive", "reason": "it is a test", "revision": 2}
    assert decide(first, 2, Decision.ACCEPTED_RISK, "until spring").revision == 3


@pytest.mark.parametrize(
    ("revision", "decision", "reason", "field"),
    [
        (0, "open", "", "expected_revision"),
        (True, "open", "", "expected_revision"),
        ("1", "open", "", "expected_revision"),
        (1, "closed", "x", "decision"),
        (1, "OPEN", "x", "decision"),
        (1, "open", None, "reason"),
    ],
)
def test_what_is_no_decision_is_refused(revision: Any, decision: Any, reason: Any, field: str) -> None:
    """By the name of the argument."""
    with pytest.raises(Invalid) as caught:
        decide(NEW, revision, decision, reason)
    assert caught.value.field == field


@pytest.mark.parametrize(("decision", "suggests"), [*product(Decision, Decision)])
def test_advice_moves_nothing(decision: Decision, suggests: Decision) -> None:
    """Whatever it suggests, decision, reason and revision stay, and whoever saw them may decide (spec D-19)."""
    review = Review(decision, "because", 4)
    advised = advise(review, Advice("a model", suggests, "it looks like one"))
    assert (advised.decision, advised.reason, advised.revision) == (decision, "because", 4)
    assert decide(advised, 4, Decision.OPEN).advice == advised.advice
    assert advised.advice is not None
    assert advised.advice.advisor == "a model"
    assert advise(advised, None) == review
