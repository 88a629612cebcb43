"""An analysis done again, as a new one that supersedes it: is it meant, and done."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.authority.actions import new_id
from testigo.errors import StateConflict
from testigo.evidence.analyses import BegunAnalysis
from testigo.evidence.listing import AnalysisDetail, analysis
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules import fields
from testigo.scan.again import reprocess_analysis
from testigo.scan.asked import QUEUE
from testigo.web.door import AtDoor, order
from testigo.web.panel.actions import checked_reason
from testigo.web.panel.pages import ROOT, render, url, words
from testigo.web.panel.reviewing import Case, Pair, changed
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/analyses/{analysis_id}/reprocess", in_schema=False)

ActionId = Annotated[str, Form(max_length=64)]
Reason = Annotated[str, Form(max_length=4_000)]


@routes.get("", Right.RETRY)
async def ask_reprocess(request: Request, analysis_id: str, door: AtDoor, who: Caller, reason: str = "") -> Response:
    """Is it meant?"""
    detail = await door.read(analysis, AnalysisId(analysis_id))
    view, t = detail.view, words(request)
    if view.state is AnalysisState.RUNNING or view.successor is not None:
        conflict = StateConflict(f"The analysis {view.id} is not done again.", state=str(view.state))
        return _refused(request, who, detail, reason, conflict)
    return render(
        request,
        "reprocess_analysis.html",
        title=t("Analyse {name} again?", name=f"{view.project} #{view.n}"),
        who=who,
        view=view,
        queue=QUEUE,
        action_id=new_id(),
        reason=reason,
    )


@routes.post("", Right.RETRY)
async def do_reprocess(
    request: Request, analysis_id: str, door: AtDoor, who: Caller, action_id: ActionId, reason: Reason = ""
) -> Response:
    """Begin its successor, for workers that serve scans."""
    fields.must_be_id(analysis_id, field="analysis")
    fields.must_be_id(action_id, field="action_id")
    said = checked_reason(reason, needed=False)
    objects = [f"analysis:{analysis_id}"]
    asked = order(request, who, Right.RETRY, "analyses.reprocess", objects, said, action_id=action_id)

    def command(c: Connection) -> BegunAnalysis:
        return reprocess_analysis(c, AnalysisId(analysis_id), action=asked.action)

    try:
        done = await door.act(asked, command)
    except StateConflict as error:
        return _refused(request, who, await door.read(analysis, AnalysisId(analysis_id)), said, error)
    return RedirectResponse(url(request, f"{ROOT}/analyses/{done.analysis_id}", said="again"), 303)


def _refused(request: Request, who: Caller, detail: AnalysisDetail, reason: str, error: StateConflict) -> Response:
    """What was asked for beside how it is now."""
    view, t = detail.view, words(request)
    address = url(request, f"{ROOT}/analyses/{view.id}")
    tried = [Pair(t("Action"), t("Analyse again")), Pair(t("Reason"), reason)]
    now = [Pair(t("Analysis"), t(str(view.state))), Pair(t("Done again by"), view.successor or t("none"))]
    return changed(request, who, error, [Case(f"{view.project} #{view.n}", address, tried, now)], back=address)
