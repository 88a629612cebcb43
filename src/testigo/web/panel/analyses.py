"""Analyses: the list of them, and one with its three outcomes, its coverage and its gate (spec D-21, D-24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.authority.actions import JobId, new_id
from testigo.authority.read import Cursor, JobView, job
from testigo.errors import Invalid, NotFound, StateConflict
from testigo.evidence.analyses import EndedAnalysis, cancel_analysis
from testigo.evidence.artifacts import artifacts
from testigo.evidence.listing import Alike, AnalysisDetail, analyses, analysis
from testigo.evidence.model import AnalysisId, AnalysisState, ArtifactView
from testigo.rules import fields
from testigo.rules.evidence.review import meaning
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.settings import LIMITS
from testigo.web.door import AtDoor, order
from testigo.web.panel.actions import checked_reason
from testigo.web.panel.pages import ROOT, render, url, words
from testigo.web.panel.reviewing import Case, Pair, changed, said_reason
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/analyses", in_schema=False)

SHOWN = 50
"""Analyses of one page."""

JOBS_SHOWN = 50
"""Jobs of an analysis whose states are shown."""

Project = Annotated[str | None, Query(max_length=LIMITS.name_chars_max)]
ActionId = Annotated[str, Form(max_length=64)]
Reason = Annotated[str, Form(max_length=4_000)]


@routes.get("", Right.READ)
async def every(
    request: Request, door: AtDoor, who: Caller, project: Project = None, after: str | None = None
) -> Response:
    """Analyses from the newest: all, or those of a project."""
    before = None if after is None else Cursor(after)
    found = await door.read(analyses, project=project or None, before=before, limit=SHOWN)
    return render(
        request,
        "analyses.html",
        title="Analyses",
        who=who,
        topics=["analyses"],
        found=found,
        project=project or None,
        severities=SEVERITIES,
    )


@routes.get("/{analysis_id}", Right.READ)
async def show(request: Request, analysis_id: str, door: AtDoor, who: Caller) -> Response:
    """One analysis: what its jobs, its evidence and its gate came to, and why."""
    detail, kept, jobs = await door.read(_whole, AnalysisId(analysis_id))
    view, t = detail.view, words(request)
    return render(
        request,
        "analysis.html",
        title=f"{view.project} #{view.n}",
        who=who,
        topics=[f"analysis:{view.id}"] + ["jobs"] * (view.state is AnalysisState.RUNNING),
        detail=detail,
        view=view,
        artifacts=kept,
        jobs=jobs,
        standing=Counter(str(each.state) for each in jobs.values()),
        parts_of=[(part, jobs.get(part.job_id)) for part in detail.parts],
        missing=sorted(set(view.analysers) - {part.analyser for part in detail.parts}),
        publishing=jobs.get(view.publish_job),
        reasons=[said_reason(reason, t) for reason in detail.gate.reasons],
        rows=_by_severity(detail.summary),
        counted=detail.gate.counted,
        severities=SEVERITIES,
        result=request.query_params.get("said"),
    )


@routes.get("/{analysis_id}/cancel", Right.CANCEL)
async def ask_cancel(request: Request, analysis_id: str, door: AtDoor, who: Caller, reason: str = "") -> Response:
    """Is it meant?"""
    detail = await door.read(analysis, AnalysisId(analysis_id))
    return _asks(request, who, detail, new_id(), reason)


@routes.post("/{analysis_id}/cancel", Right.CANCEL)
async def do_cancel(
    request: Request, analysis_id: str, door: AtDoor, who: Caller, action_id: ActionId, reason: Reason = ""
) -> Response:
    """Cancel it, and those of its jobs that have not ended."""
    fields.must_be_id(analysis_id, field="analysis")
    fields.must_be_id(action_id, field="action_id")
    try:
        said = checked_reason(reason, needed=True)
    except Invalid as error:
        detail = await door.read(analysis, AnalysisId(analysis_id))
        return _asks(request, who, detail, action_id, reason, error)
    objects = [f"analysis:{analysis_id}"]
    asked = order(request, who, Right.CANCEL, "analyses.cancel", objects, said, action_id=action_id)

    def command(c: Connection) -> EndedAnalysis:
        return cancel_analysis(c, AnalysisId(analysis_id), reason=said, action=asked.action)

    try:
        done = await door.act(asked, command)
    except StateConflict as error:
        return _ended(request, who, await door.read(analysis, AnalysisId(analysis_id)), said, error)
    if not done.ended:
        conflict = StateConflict(f"The analysis {analysis_id} had ended before.", state=str(done.state))
        return _ended(request, who, await door.read(analysis, AnalysisId(analysis_id)), said, conflict)
    return RedirectResponse(url(request, f"{ROOT}/analyses/{analysis_id}", said="cancelled"), 303)


def _asks(
    request: Request, who: Caller, detail: AnalysisDetail, action_id: str, reason: str, error: Invalid | None = None
) -> Response:
    view, t = detail.view, words(request)
    if view.state is not AnalysisState.RUNNING:
        conflict = StateConflict(f"The analysis {view.id} has ended.", state=str(view.state))
        return _ended(request, who, detail, reason, conflict)
    return render(
        request,
        "cancel_analysis.html",
        title=t("Cancel the analysis {name}?", name=f"{view.project} #{view.n}"),
        who=who,
        status=200 if error is None else error.http_status,
        view=view,
        action_id=action_id,
        reason=reason,
        error="" if error is None else t(error.message),
    )


def _ended(request: Request, who: Caller, detail: AnalysisDetail, reason: str, error: StateConflict) -> Response:
    """The page of a cancel that came too late."""
    view, t = detail.view, words(request)
    address = url(request, f"{ROOT}/analyses/{view.id}")
    tried = [Pair(t("Action"), t("Cancel")), Pair(t("Reason"), reason)]
    now = [Pair(t("Analysis"), t(str(view.state))), Pair(t("Findings"), str(view.findings))]
    return changed(request, who, error, [Case(f"{view.project} #{view.n}", address, tried, now)], back=address)


def _whole(
    c: Connection, analysis_id: AnalysisId
) -> tuple[AnalysisDetail, Sequence[ArtifactView], Mapping[JobId, JobView]]:
    """The analysis, its artifacts and its jobs, those that are still kept."""
    detail, jobs = analysis(c, analysis_id), {}
    for name in [*(part.job_id for part in detail.parts), detail.view.publish_job][:JOBS_SHOWN]:
        try:
            jobs[name] = job(c, name)
        except NotFound:
            continue
    return detail, artifacts(c, analysis_id), jobs


def _by_severity(summary: Sequence[Alike]) -> list[tuple[Severity, int, int, int, int]]:
    """For each severity: all findings, those that stand open or need a review, those not suppressed, and the new."""
    rows = []
    for severity in SEVERITIES:
        alike = [row for row in summary if row.severity is severity]
        rows.append(
            (
                severity,
                sum(row.findings for row in alike),
                sum(row.findings for row in alike if meaning(row.decision).counts),
                sum(row.findings for row in alike if not meaning(row.decision).counts),
                sum(row.findings for row in alike if not row.known),
            )
        )
    return rows
