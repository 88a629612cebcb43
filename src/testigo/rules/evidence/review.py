"""What people decide about a finding: seven decisions, as a table, and the revision that guards them.

A new finding is open, at revision 1, and inherits nothing (spec D-16, D-18). A decision is made at the revision that
was seen, so nobody overwrites what they did not see (spec D-17). Advice stands apart: it never suppresses, accepts
a risk or moves the gate, and a decision that is made meanwhile does not fail because of it (spec D-19).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from testigo.errors import Invalid, RevisionMismatch
from testigo.rules import fields
from testigo.rules.discreet import discreet

__all__ = ["DECISIONS", "NEW", "Advice", "Decision", "Meaning", "Review", "advise", "decide", "meaning"]


class Decision(StrEnum):
    """What may be decided, at any time and in any order."""

    OPEN = "open"
    """Nobody has decided."""
    NEEDS_REVIEW = "needs_review"
    """Somebody else shall look at it."""
    GATE_EXEMPT = "gate_exempt"
    """It is real, and not for the gate."""
    ACCEPTED_RISK = "accepted_risk"
    """It is real, and the risk is taken."""
    IGNORE = "ignore"
    """It does not matter here."""
    FALSE_POSITIVE = "false_positive"
    """The analyser is wrong."""
    FIXED = "fixed"
    """It is mended, says who decides: nothing is inspected (spec D-18)."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a decision does: whether the finding counts for the gate, is suppressed, and why has to be said.

    `accepts`: whoever takes its analysis for a baseline takes it for known. What was said to be mended is not: should
    it be found again, it was not.
    """

    decision: Decision
    counts: bool
    suppresses: bool
    needs_reason: bool
    accepts: bool


DECISIONS: tuple[Meaning, ...] = (
    Meaning(Decision.OPEN, counts=True, suppresses=False, needs_reason=False, accepts=False),
    Meaning(Decision.NEEDS_REVIEW, counts=True, suppresses=False, needs_reason=False, accepts=False),
    Meaning(Decision.GATE_EXEMPT, counts=False, suppresses=False, needs_reason=True, accepts=True),
    Meaning(Decision.ACCEPTED_RISK, counts=False, suppresses=False, needs_reason=True, accepts=True),
    Meaning(Decision.IGNORE, counts=False, suppresses=True, needs_reason=True, accepts=True),
    Meaning(Decision.FALSE_POSITIVE, counts=False, suppresses=True, needs_reason=True, accepts=True),
    Meaning(Decision.FIXED, counts=False, suppresses=True, needs_reason=True, accepts=False),
)

_MEANINGS = {row.decision: row for row in DECISIONS}


@dataclass(frozen=True, slots=True)
class Advice:
    """What an advisor, such as a model, thinks of a finding: for people to read, and nothing else."""

    advisor: str
    suggests: Decision
    because: str


@dataclass(frozen=True, slots=True)
class Review:
    """Where a finding stands; `revision` counts its decisions, from 1."""

    decision: Decision = Decision.OPEN
    reason: str = ""
    revision: int = 1
    advice: Advice | None = None


NEW = Review()
"""Where every new finding stands."""


def meaning(decision: Decision) -> Meaning:
    """The row of the table."""
    return _MEANINGS[decision]


def decide(review: Review, expected_revision: int, decision: Decision, reason: str = "") -> Review:
    """Where the finding stands after this decision; deciding the same again is a decision as well.

    Raises `RevisionMismatch` when it is not at `expected_revision` any more; its facts name the decision, the
    reason and the revision now. Raises `Invalid` for an exclusion without a reason (spec D-16, D-17).
    """
    expected = fields.whole(expected_revision, field="expected_revision", low=1, high=fields.INTEGER_MAX)
    decision = fields.member(decision, Decision, field="decision")
    if not isinstance(reason, str):
        raise Invalid("text is needed", field="reason")
    said = discreet(reason).strip()
    if meaning(decision).needs_reason and not said:
        raise Invalid(f"to set a finding to {decision} needs a reason", field="reason", limit="at least 1 character")
    if review.revision != expected:
        raise RevisionMismatch(
            f"The finding is at revision {review.revision}, not {expected}.",
            remedy="Look at the finding as it is now, and decide again: somebody decided since you saw it.",
            decision=str(review.decision),
            reason=review.reason,
            revision=review.revision,
        )
    return replace(review, decision=decision, reason=said, revision=review.revision + 1)


def advise(review: Review, advice: Advice | None) -> Review:
    """Where the finding stands after this advice: where it stood, at the same revision (spec D-19)."""
    return replace(review, advice=advice)
