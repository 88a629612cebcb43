"""What pages about evidence have in common: decisions in words, what was chosen, and what changed meanwhile.

A change that was meant for something as it was seen, and that is no longer so, is not done. What was tried is
then shown beside how it is now, with a way to try it again: nothing of it is lost (spec D-17, D-19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import Request, Response
from markupsafe import Markup

from testigo.access.who import Who
from testigo.errors import Conflict, Invalid
from testigo.evidence.model import FindingId
from testigo.rules import fields
from testigo.rules.evidence.gate import Code, Reason
from testigo.rules.evidence.review import DECISIONS, Decision
from testigo.settings import LIMITS
from testigo.web.panel.pages import render
from testigo.web.panel.words import NONE, Words

__all__ = ["EFFECTS", "Case", "Pair", "changed", "chosen_from", "chosen_text", "needs_reason", "said_reason"]

EFFECTS: Mapping[Decision, str] = {
    Decision.OPEN: "It counts for the gate, as what nobody has decided about does.",
    Decision.NEEDS_REVIEW: "It counts for the gate until somebody else has looked at it.",
    Decision.GATE_EXEMPT: "It stays in sight, and does not count for the gate of this analysis.",
    Decision.ACCEPTED_RISK: "It stays in sight as a risk that is taken, and does not count for the gate of this "
    "analysis.",
    Decision.IGNORE: "It is suppressed, and does not count for the gate of this analysis.",
    Decision.FALSE_POSITIVE: "It is suppressed as a mistake of the analyser, and does not count for the gate of this "
    "analysis.",
    Decision.FIXED: "It is suppressed. Nothing is inspected: if it is still there, the next analysis finds it again.",
}
"""What each decision does to a finding."""

_REASONS: Mapping[Code, str] = {
    Code.ANALYSER_MISSING: "{analyser} left no result.",
    Code.ANALYSER_FAILED: "{analyser} failed.",
    Code.ANALYSER_INCOMPLETE: "{analyser} did not complete its work.",
    Code.FILES_SKIPPED: "{analyser} skipped {n} file in scope. | {analyser} skipped {n} files in scope.",
    Code.FILES_FAILED: "{analyser} could not analyse {n} file. | {analyser} could not analyse {n} files.",
    Code.NOTHING_IN_SCOPE: "Nothing was there to look at.",
}

_TOO_MANY: Mapping[tuple[bool, bool], str] = {
    (False, False): "{n} {severity} finding counts; none may pass. | {n} {severity} findings count; none may pass.",
    (False, True): "{n} {severity} finding counts; at most {allowed} may pass."
    " | {n} {severity} findings count; at most {allowed} may pass.",
    (True, False): "{n} {severity} finding by {analyser} counts; none may pass."
    " | {n} {severity} findings by {analyser} count; none may pass.",
    (True, True): "{n} {severity} finding by {analyser} counts; at most {allowed} may pass."
    " | {n} {severity} findings by {analyser} count; at most {allowed} may pass.",
}
"""What is said of too many findings, by whether they are one analyser's, and whether some of them may pass."""

_NEEDS_REASON = frozenset(row.decision for row in DECISIONS if row.needs_reason)


class Pair(NamedTuple):
    """A fact of a page: its name in words, and its value, if it has one."""

    name: str
    value: str | Markup | None


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is no longer as it was seen: what was tried, and how it is now."""

    title: str
    address: str
    tried: Sequence[Pair]
    now: Sequence[Pair]


def changed(
    request: Request,
    who: Who,
    error: Conflict,
    cases: Sequence[Case],
    *,
    done: str = "",
    more: int = 0,
    again: str | None = None,
    back: str,
) -> Response:
    """The page of what was not done, for each thing beside how it is now.

    `done` says what was done of the same order, `more` counts what is not shown, and `again` leads to the question
    anew, with what was tried filled in.
    """
    return render(
        request,
        "conflict.html",
        title="It has changed",
        who=who,
        status=error.http_status,
        error=error,
        cases=cases,
        done=done,
        more=more,
        again=again,
        back=back,
    )


def needs_reason(decision: Decision, count: int) -> bool:
    """Whether it has to be said why: for what excludes from the gate, and whatever is done to many (spec D-16)."""
    return decision in _NEEDS_REASON or count > 1


def said_reason(reason: Reason, t: Words) -> str:
    """Why a gate does not pass, in the words and the language of the panel."""
    if reason.code is not Code.THRESHOLD_EXCEEDED:
        return t(_REASONS[reason.code], analyser=reason.analyser or NONE, n=reason.found)
    facts = {"n": reason.found, "severity": t(str(reason.severity)), "allowed": reason.allowed}
    return t(_TOO_MANY[reason.analyser is not None, reason.allowed > 0], analyser=reason.analyser, **facts)


def chosen_from(texts: Sequence[str]) -> dict[FindingId, int]:
    """The findings that were chosen, each at the revision at which it was seen: `ID.REVISION`, several with a space.

    Raises `Invalid` for what is none, for none at all and for too many.
    """
    chosen: dict[FindingId, int] = {}
    for each in " ".join(texts).split():
        name, dot, revision = each.partition(".")
        fields.must_be_id(name, field="id")
        if not (dot and revision.isascii() and revision.isdigit() and len(revision) <= len(str(fields.INTEGER_MAX))):
            raise Invalid("At which revision it was seen is not told.", field="id", limit="ID.REVISION")
        chosen[FindingId(name)] = fields.whole(int(revision), field="id", low=1, high=fields.INTEGER_MAX)
    if not 1 <= len(chosen) <= LIMITS.page_max:
        raise Invalid(
            "No finding was chosen, or too many.",
            field="id",
            limit=f"1 to {LIMITS.page_max}",
            remedy="Go back, and tick those that are meant.",
        )
    return chosen


def chosen_text(chosen: Mapping[FindingId, int]) -> str:
    """What `chosen_from` reads again."""
    return " ".join(f"{name}.{revision}" for name, revision in chosen.items())
