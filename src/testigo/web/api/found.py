"""Findings as the API tells them, and what is asked about them (spec D-14, D-16 to D-19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from testigo.evidence.model import AnalysisState, FindingView
from testigo.rules.evidence.finding import FingerprintBy
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.occurrence import Presence
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Level, Severity
from testigo.settings import LIMITS
from testigo.web.api.paging import PageQuery
from testigo.web.api.projects import ExemptionShape
from testigo.web.api.shapes import Id, Moment, PageShape, Shape, Whole

__all__ = [
    "AdviceShape",
    "AdvisedShape",
    "Advising",
    "DecidedRowShape",
    "DecidedShape",
    "Deciding",
    "DeletedShape",
    "DeletingFinding",
    "EndingExemption",
    "Exempting",
    "ExemptionSetShape",
    "FindingDetailShape",
    "FindingShape",
    "FindingsQuery",
    "FindingsShape",
    "HappenedShape",
    "SightingShape",
    "finding_shape",
]

Revision = Annotated[Whole, Field(ge=1, le=2**31 - 1)]
Why = Annotated[str, Field(max_length=LIMITS.text_bytes_max)]
Needed = Annotated[str, Field(min_length=1, max_length=LIMITS.text_bytes_max)]
Text = Annotated[str | None, Field(min_length=1, max_length=1_000)]


class AdviceShape(Shape):
    """What an advisor thinks of a finding. It decides nothing."""

    advisor: str
    suggests: Decision
    because: str


class FindingShape(Shape):
    """A finding and where it stands; `revision` counts its decisions from 1.

    Whoever may not see documents is told neither `snippet` nor `metadata`, and `redacted` is true.
    """

    id: str
    analysis_id: str
    part: int
    analyser: str
    rule: str
    rule_name: str | None
    severity: Severity
    level: Level
    path: str | None
    line: int | None
    end_line: int | None
    column: int | None
    end_column: int | None
    message: str
    snippet: str | None
    fingerprint: str
    fingerprint_by: FingerprintBy
    suppressed: bool
    """By the source itself; that decides nothing."""
    metadata: dict[str, str]
    decision: Decision
    reason: str
    revision: int
    decided_by: str | None
    decided_at: Moment | None
    advice: AdviceShape | None
    advised_at: Moment | None
    known: bool
    """The baseline has it."""
    exempt: bool
    """The project takes the risk now."""
    redacted: bool


class FindingsShape(PageShape[FindingShape]):
    """A page of findings, and the revision of the collection that all its pages have."""

    revision: int


class HappenedShape(Shape):
    """A decision about a finding."""

    revision: int
    decision: Decision
    reason: str
    actor: str
    action: str
    at: Moment


class SightingShape(Shape):
    """A look of the project at the same fingerprint: where it was found, if it was, and what was decided there."""

    analysis_id: str
    n: int
    state: AnalysisState
    finding_id: str | None
    decision: Decision | None


class FindingDetailShape(Shape):
    """A finding, its decisions, and what its project knows of its fingerprint."""

    view: FindingShape
    project: str
    n: int
    """The number of its analysis."""
    revision: int
    """That of the collection."""
    history: tuple[HappenedShape, ...]
    presence: Presence | None
    exemption: ExemptionShape | None
    sightings: tuple[SightingShape, ...]


class FindingsQuery(PageQuery):
    """Which findings: those that have all of what is given."""

    severity: Annotated[tuple[Severity, ...], Field(max_length=len(Severity))] = ()
    """One of these."""
    decision: Annotated[tuple[Decision, ...], Field(max_length=len(Decision))] = ()
    """One of these."""
    analyser: Text = None
    """By this analyser."""
    rule: Text = None
    """Of this rule."""
    path: Text = None
    """In this file, or with a slash at its end below this folder."""
    fingerprint: Text = None
    """Of this fingerprint."""
    text: Text = None
    """With this text in anything that they say; needs the right to see documents."""
    known: bool | None = None
    """Whether the baseline has them."""
    exempt: bool | None = None
    """Whether the project takes the risk."""
    suppressed: bool | None = None
    """Whether the source itself suppresses them."""


class Deciding(Shape):
    """What is decided about findings, each at the revision at which it was seen."""

    findings: Annotated[dict[Id, Revision], Field(min_length=1, max_length=LIMITS.page_max)]
    """Revisions by the ids of findings."""
    decision: Decision
    reason: Why = ""
    """Why: needed for what excludes from the gate, and for several findings."""
    collection_revision: Revision | None = None
    """If given, nothing is decided when anything of the collection has changed since."""


class DecidedRowShape(Shape):
    """What became of one finding: where it stands now, and whether this request put it there."""

    finding_id: str
    decided: bool
    decision: Decision | None
    """Null of one that is gone."""
    revision: int


class DecidedShape(Shape):
    """What became of each finding in the order given; the gate and the collection as the decisions left them."""

    analysis_id: str
    findings: tuple[DecidedRowShape, ...]
    verdict: Verdict
    revision: int


class Advising(Shape):
    """What an advisor thinks of a finding, or null for nothing any more."""

    advice: AdviceShape | None


class AdvisedShape(Shape):
    """The finding that was advised upon."""

    finding_id: str


class Exempting(Shape):
    """Why a project takes a risk, and until when."""

    reason: Needed
    """Why, for people: the exemption and the audit tell it."""
    expected_revision: Annotated[Whole, Field(ge=0, le=2**31 - 1)]
    """At which the exemption was seen; 0 where there is none."""
    expires_at: Moment | None = None
    """When it ends, at most 366 days on; null is for ever."""


class EndingExemption(Shape):
    """Why an exemption is taken back."""

    reason: Needed
    """Why, for people: the audit tells it."""
    expected_revision: Revision
    """At which the exemption was seen."""


class ExemptionSetShape(Shape):
    """The exemption's revision now, and the gate of the newest published analysis."""

    project: str
    revision: int
    verdict: Verdict | None


class DeletingFinding(Shape):
    """Why a finding is deleted."""

    reason: Needed
    """Why, for people: the audit tells it."""
    expected_revision: Revision
    """At which the finding was seen."""


class DeletedShape(Shape):
    """What was deleted; the gate and the collection as that left them."""

    finding_id: str
    analysis_id: str
    verdict: Verdict
    revision: int


def finding_shape(view: FindingView, *, sees: bool) -> FindingShape:
    """A finding as somebody is told of it who `sees` what the source holds, or does not."""
    review, said = view.review, view.finding.to_json()
    members: Mapping[str, Any] = said if sees else {**said, "snippet": None, "metadata": {}}
    return FindingShape(
        id=view.id,
        analysis_id=view.analysis_id,
        part=view.part,
        decision=review.decision,
        reason=review.reason,
        revision=review.revision,
        decided_by=view.decided_by,
        decided_at=view.decided_at,
        advice=None if review.advice is None else AdviceShape.model_validate(review.advice),
        advised_at=view.advised_at,
        known=view.known,
        exempt=view.exempt,
        redacted=not sees,
        **members,
    )
