"""Findings: those of an analysis as a list to review, and one with all that is known of it (spec D-16 to D-19)."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query as Asked
from fastapi import Request, Response
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.authority.read import Cursor
from testigo.errors import CollectionChanged, Invalid
from testigo.evidence.findings import Collection, finding, findings
from testigo.evidence.listing import AnalysisDetail, analysis
from testigo.evidence.model import AnalysisId, FindingId
from testigo.rules.evidence.review import DECISIONS, Decision
from testigo.rules.evidence.severity import SEVERITIES
from testigo.web.door import AtDoor
from testigo.web.panel.pages import render
from testigo.web.panel.wanted import Wanted, wanted
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("", in_schema=False)

SHOWN = 50
"""Findings of one page."""

VIEWS = (
    ("To be reviewed", {"decision": ["open", "needs_review"]}),
    ("New against the baseline", {"decision": ["open", "needs_review"], "known": ["no"]}),
    ("Decided", {"decision": [str(row.decision) for row in DECISIONS if not row.counts]}),
    ("Exempt in the project", {"exempt": ["yes"]}),
)
"""What is often looked for, by its name."""

After = Annotated[str | None, Asked(alias="after")]


@routes.get("/analyses/{analysis_id}/findings", Right.READ)
async def listed(request: Request, analysis_id: str, door: AtDoor, who: Caller, after: After = None) -> Response:
    """The findings of an analysis that are asked for, the worst first, each page of one revision of the collection."""
    error: Invalid | CollectionChanged | None = None
    asked, found = Wanted(), None
    detail = await door.read(analysis, AnalysisId(analysis_id))
    try:
        asked = wanted(request.query_params, sees=who.may(Right.DOCUMENTS))
        detail, found = await door.read(_both, AnalysisId(analysis_id), asked, after)
    except (Invalid, CollectionChanged) as refusal:
        error = refusal
    view = detail.view
    return render(
        request,
        "findings.html",
        title="Findings",
        who=who,
        status=200 if error is None else error.http_status,
        topics=[f"analysis:{view.id}"],
        view=view,
        analysers=sorted({row.analyser for row in detail.summary} | set(view.analysers)),
        wanted=asked,
        asked_query=urlencode(asked.query, doseq=True),
        found=found,
        error=error,
        stale=isinstance(error, CollectionChanged),
        severities=SEVERITIES,
        decisions=DECISIONS,
        views=VIEWS,
        decided=_decided(request),
    )


@routes.get("/findings/{finding_id}", Right.READ)
async def show(request: Request, finding_id: str, door: AtDoor, who: Caller) -> Response:
    """One finding: what was found where, what was decided about it, and what its project knows of it."""
    found = await door.read(finding, FindingId(finding_id))
    return render(
        request,
        "finding.html",
        title=found.view.finding.rule,
        who=who,
        topics=[f"analysis:{found.view.analysis_id}"],
        found=found,
        decisions=DECISIONS,
        decided=_decided(request),
        result=request.query_params.get("said"),
    )


def _both(
    c: Connection, analysis_id: AnalysisId, asked: Wanted, after: str | None
) -> tuple[AnalysisDetail, Collection]:
    cursor = None if after is None else Cursor(after)
    found = findings(c, analysis_id, asked.filter, after=cursor, limit=SHOWN)
    return analysis(c, analysis_id), found


def _decided(request: Request) -> tuple[int, Decision] | None:
    """What was just done, as the address tells it: how many findings were set to what."""
    count, decision = request.query_params.get("n", ""), request.query_params.get("as", "")
    if decision not in list(Decision) or not (count.isascii() and count.isdigit() and len(count) < 5):
        return None
    return int(count), Decision(decision)
