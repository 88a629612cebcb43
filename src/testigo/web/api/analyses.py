"""Analyses: what was looked at, what was found in all, and what the gate says of it (spec D-21, D-24)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from testigo.access.roles import Right
from testigo.errors import CursorInvalid, NotFound, StateConflict
from testigo.evidence.analyses import cancel_analysis
from testigo.evidence.listing import analyses, analysis
from testigo.evidence.model import AnalysisId, AnalysisState, PartView
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.evidence.gate import Code, Verdict
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from testigo.scan.again import reprocess_analysis
from testigo.settings import LIMITS
from testigo.web.api import dossiers, examples
from testigo.web.api.bodies import body
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.projects import PolicyShape
from testigo.web.api.shapes import Id, Moment, PageShape, Shape
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["AnalysisPath", "CancellingAnalysis", "ReprocessingAnalysis", "routes"]

routes = Routes("/analyses", tags=["analyses"])

AnalysisPath = Annotated[Id, Path(description="The analysis's id.")]


class AnalysisShape(Shape):
    """An analysis, numbered from 1 in its project. `counting` are findings that stand open or need a review.

    `revision` is that of its collection of findings; `verdict` what the gate said when it was last evaluated.
    """

    id: str
    project: str
    n: int
    source: str
    state: AnalysisState
    revision: int
    analysers: tuple[str, ...]
    actor: str
    began_at: Moment
    ended_at: Moment | None
    reason: str | None
    persisted: bool
    """Its evidence is published."""
    publish_job: str
    baseline: str | None
    scope: tuple[str, ...] | None
    """The part of the source that it looks at: files, and folders with a slash at their end; null for all of it."""
    left_out: dict[str, int] | None
    """How many files of that are not in scope, by why; null where it is not said."""
    supersedes: str | None
    """The analysis whose work it does again."""
    successor: str | None
    """The analysis that does its work again."""
    findings: int
    artifacts: int
    counts: dict[Severity, int]
    counting: dict[Severity, int]
    verdict: Verdict | None
    evaluated_at: Moment | None


class UncoveredShape(Shape):
    """A file that was not analysed, and why."""

    path: str
    reason: str


class CoverageShape(Shape):
    """How many files were in scope, and which were not analysed: at most 1,000 of each are named."""

    in_scope: int
    analysed: int
    skipped_total: int
    failed_total: int
    skipped: tuple[UncoveredShape, ...]
    failed: tuple[UncoveredShape, ...]


class PartShape(Shape):
    """One analyser's share of an analysis; what its result would tell is null while there is none."""

    n: int
    analyser: str
    job_id: str
    files: int
    analyser_version: str | None
    run: str | None
    request: str | None
    result: str | None
    artifact_manifest: str | None
    provenance: dict[str, str]
    outcome: Outcome | None
    reasons: tuple[str, ...]
    coverage: CoverageShape | None
    findings: int | None
    started_at: Moment | None
    ended_at: Moment | None


class AlikeShape(Shape):
    """How many findings are alike in what the summary tells."""

    analyser: str
    severity: Severity
    decision: Decision
    suppressed: bool
    known: bool
    """The baseline has them."""
    findings: int


class GateReasonShape(Shape):
    """Why a gate does not pass."""

    code: Code
    analyser: str | None
    severity: Severity | None
    found: int
    allowed: int
    text: str


class GateShape(Shape):
    """What the gate says now, and by which policy; `policy_revision` is null for one of the analysis's own."""

    verdict: Verdict
    reasons: tuple[GateReasonShape, ...]
    counted: dict[Severity, int]
    policy: PolicyShape
    policy_revision: int | None
    kept: Verdict | None
    """What was written last; exemptions may have expired since."""
    evaluated_at: Moment | None


class AnalysisDetailShape(Shape):
    """An analysis with its parts, the summary of its findings, and its gate."""

    view: AnalysisShape
    parts: tuple[PartShape, ...]
    summary: tuple[AlikeShape, ...]
    gate: GateShape
    not_asked: tuple[str, ...]
    """Analysers that analyses of the whole before it asked for, and this one did not: it says nothing of theirs."""


class AnalysesQuery(PageQuery):
    """Which analyses."""

    project: Annotated[str | None, Field(max_length=LIMITS.name_chars_max)] = None
    """Of this project."""


class CancellingAnalysis(Shape):
    """Why an analysis is cancelled."""

    reason: Annotated[str, Field(min_length=1, max_length=LIMITS.text_bytes_max)]
    """Why, for people: the analysis and the audit tell it."""


class EndedShape(Shape):
    """What an analysis is now, and whether this request ended it."""

    analysis_id: str
    state: AnalysisState
    ended: bool


class ReprocessingAnalysis(Shape):
    """Why an analysis is done again."""

    reason: Annotated[str, Field(max_length=LIMITS.text_bytes_max)] = ""
    """Why, for people: the audit tells it."""


class BegunShape(Shape):
    """The analysis that has begun, and the one whose work it does again."""

    analysis_id: str
    project: str
    n: int
    supersedes: str


@routes.get(
    "",
    Right.READ,
    **told("list_analyses", "List analyses", shows=examples.page(dossiers.ANALYSIS), refuses=(CursorInvalid,)),
)
async def list_analyses(
    asked: Annotated[AnalysesQuery, Query()], request: Request, door: AtDoor
) -> PageShape[AnalysisShape]:
    """List analyses from the newest."""
    found = await door.read(analyses, project=asked.project, before=asked.cursor, limit=asked.limit)
    items = tuple(map(AnalysisShape.model_validate, found.items))
    return PageShape(items=items, next=next_address(request, found.next))


@routes.get(
    "/{analysis_id}",
    Right.READ,
    **told("get_analysis", "Show an analysis", shows=dossiers.ANALYSIS_DETAIL, refuses=(NotFound,)),
)
async def get_analysis(analysis_id: AnalysisPath, door: AtDoor) -> AnalysisDetailShape:
    """Show an analysis: its coverage with what was left out, its findings in numbers, and its gate with the reasons."""
    found = await door.read(analysis, AnalysisId(analysis_id))
    return AnalysisDetailShape(
        view=AnalysisShape.model_validate(found.view),
        parts=tuple(map(_part, found.parts)),
        summary=tuple(map(AlikeShape.model_validate, found.summary)),
        gate=GateShape.model_validate(found.gate),
        not_asked=found.not_asked,
    )


@routes.post(
    "/{analysis_id}/cancel",
    Right.CANCEL,
    **told(
        "cancel_analysis",
        "Cancel an analysis",
        shows={"analysis_id": dossiers.ANALYSIS_ID, "state": "cancelled", "ended": True},
        asks=CancellingAnalysis,
        asks_so={"reason": "the wrong tree"},
        refuses=(NotFound, StateConflict, *AGAIN),
    ),
)
async def post_cancel(
    analysis_id: AnalysisPath,
    why: Annotated[CancellingAnalysis, Depends(body(CancellingAnalysis))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> EndedShape:
    """Cancel an analysis and those of its jobs that have not ended. Published evidence stays: 409."""
    objects = [f"analysis:{analysis_id}"]
    made = order(request, who, Right.CANCEL, "analyses.cancel", objects, why.reason, action_id=key)
    done = await door.act(
        made, lambda c: cancel_analysis(c, AnalysisId(analysis_id), reason=why.reason, action=made.action)
    )
    return EndedShape.model_validate(done)


@routes.post(
    "/{analysis_id}/reprocess",
    Right.RETRY,
    **told(
        "reprocess_analysis",
        "Do an analysis again",
        shows={"analysis_id": dossiers.ANALYSIS_ID, "project": "shop", "n": 6, "supersedes": dossiers.OLD_ID},
        asks=ReprocessingAnalysis,
        asks_so={"reason": "the analyser was updated"},
        status=201,
        refuses=(NotFound, StateConflict, *AGAIN),
    ),
)
async def post_reprocess(
    analysis_id: AnalysisPath,
    why: Annotated[ReprocessingAnalysis, Depends(body(ReprocessingAnalysis))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> BegunShape:
    """Do an analysis again, as a new one that supersedes it, for workers that serve scans in the queue `testigo`.

    What is published stays. One that has not ended, or has a successor already, is refused: 409.
    """
    objects = [f"analysis:{analysis_id}"]
    made = order(request, who, Right.RETRY, "analyses.reprocess", objects, why.reason, action_id=key)
    done = await door.act(made, lambda c: reprocess_analysis(c, AnalysisId(analysis_id), action=made.action))
    return BegunShape(analysis_id=done.analysis_id, project=done.project, n=done.n, supersedes=analysis_id)


def _part(view: PartView) -> PartShape:
    members: dict[str, Any] = {name: getattr(view, name) for name in PartShape.model_fields if name != "coverage"}
    coverage = None if view.coverage is None else CoverageShape.model_validate(view.coverage)
    return PartShape(coverage=coverage, **members)
