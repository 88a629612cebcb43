"""To decide about findings, one or many: asked first, then done to what is as it was seen (spec D-16, D-17, D-19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs, urlencode

from fastapi import Form, Request, Response
from fastapi import Query as Asked
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import new_id
from testigo.errors import Invalid, NotFound, RevisionMismatch
from testigo.evidence.findings import FindingDetail, finding, findings
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, AnalysisView, FindingId
from testigo.evidence.review import Decided, DecidedRow, decide_many
from testigo.rules import fields
from testigo.rules.evidence.review import Decision
from testigo.settings import LIMITS
from testigo.web.door import AtDoor, Door, order
from testigo.web.panel.actions import REASON_CHARS_MAX, checked_reason
from testigo.web.panel.pages import ROOT, pen, render, url, words
from testigo.web.panel.reviewing import EFFECTS, Case, Pair, changed, chosen_from, chosen_text, needs_reason
from testigo.web.panel.wanted import NAMES, wanted
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/analyses/{analysis_id}", in_schema=False)

SAMPLE = 5
"""Findings that are shown of those that are meant."""

CASES = 20
"""Findings that are shown of those that were left alone."""

AGAIN = 100
"""Findings of those about which the question can be asked anew: their address has to be one that browsers take."""


class Meant(BaseModel):
    """What the form sends: which order it is, the findings as they were seen, what is decided, why, and whence."""

    action_id: str
    chosen: str
    to: str
    reason: str = ""
    asked: str = ""
    one: str = ""


@routes.get("/decide", Right.REVIEW)
async def confirm(
    request: Request,
    analysis_id: str,
    door: AtDoor,
    who: Caller,
    to: str = "",
    ids: Annotated[tuple[str, ...], Asked(alias="id")] = (),
    every: Annotated[str, Asked(alias="all")] = "",
    reason: str = "",
    asked: str = "",
    one: str = "",
) -> Response:
    """Is it meant?"""
    decision = _decision(to)
    if every:
        chosen, more = await door.read(_all_wanted, AnalysisId(analysis_id), request, who)
        asked = urlencode([(name, value) for name, value in request.query_params.multi_items() if name in NAMES])
    else:
        chosen, more = chosen_from(ids), False
    sent = Meant(action_id=new_id(), chosen=chosen_text(chosen), to=decision, reason=reason, asked=asked, one=one)
    return await _asks(request, door, who, AnalysisId(analysis_id), sent, more=more)


@routes.post("/decide", Right.REVIEW)
async def decide(
    request: Request, analysis_id: str, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]
) -> Response:
    """Decide about each that is as it was seen, and show the others beside what was tried."""
    fields.must_be_id(analysis_id, field="analysis")
    fields.must_be_id(meant.action_id, field="action_id")
    decision, chosen = _decision(meant.to), chosen_from([meant.chosen])
    try:
        reason = checked_reason(meant.reason, needed=needs_reason(decision, len(chosen)))
    except Invalid as error:
        return await _asks(request, door, who, AnalysisId(analysis_id), meant, error)
    objects = [f"finding:{name}" for name in chosen]
    asked = order(request, who, Right.REVIEW, "findings.decide", objects, reason, action_id=meant.action_id)

    def command(c: Connection) -> Decided:
        return decide_many(c, AnalysisId(analysis_id), chosen, decision, reason=reason, action=asked.action)

    done = await door.act(asked, command)
    left = [row for row in done.findings if not row.decided]
    if left:
        return await _left(request, door, who, AnalysisId(analysis_id), meant, decision, left)
    return RedirectResponse(_back(request, analysis_id, meant, n=len(chosen), decision=decision), 303)


async def _asks(
    request: Request,
    door: Door,
    who: Who,
    analysis_id: AnalysisId,
    meant: Meant,
    error: Invalid | None = None,
    *,
    more: bool = False,
) -> Response:
    t, decision, chosen = words(request), _decision(meant.to), chosen_from([meant.chosen])
    view, sample = await door.read(_shown, analysis_id, list(chosen)[:SAMPLE])
    return render(
        request,
        "decide.html",
        title=t("Set {n} finding to “{decision}”? | Set {n} findings to “{decision}”?", n=len(chosen),
                decision=t(str(decision).replace("_", " "))),
        who=who,
        status=200 if error is None else error.http_status,
        view=view,
        sample=sample,
        rest=len(chosen) - len(sample),
        more=more,
        decision=decision,
        effect=t(EFFECTS[decision]),
        meant=meant,
        needs_reason=needs_reason(decision, len(chosen)),
        reason_max=REASON_CHARS_MAX,
        error="" if error is None else t(error.message),
        back=_back(request, analysis_id, meant),
    )  # fmt: skip


async def _left(
    request: Request,
    door: Door,
    who: Who,
    analysis_id: AnalysisId,
    meant: Meant,
    decision: Decision,
    left: Sequence[DecidedRow],
) -> Response:
    """What was not decided, for somebody else was first: each beside how it is now."""
    t, chosen = words(request), chosen_from([meant.chosen])
    names = [row.finding_id for row in left[:CASES]]
    _, now = await door.read(_shown, analysis_id, names)
    there = {each.view.id: each for each in now}
    cases = [_case(request, name, chosen[name], decision, meant.reason, there.get(name)) for name in names]
    renewed = [f"{row.finding_id}.{row.revision}" for row in left[:AGAIN] if row.decision is not None]
    again = url(
        request,
        f"{ROOT}/analyses/{analysis_id}/decide",
        id=renewed,
        to=decision,
        reason=meant.reason,
        asked=meant.asked or None,
        one=meant.one or None,
    )
    done = len(chosen) - len(left)
    return changed(
        request,
        who,
        RevisionMismatch(t("Somebody decided since you saw it.")),
        cases,
        done=t("{n} finding was decided as you asked. | {n} findings were decided as you asked.", n=done)
        if done
        else "",
        more=len(left) - len(cases),
        again=again if renewed else None,
        back=_back(request, analysis_id, meant),
    )


def _case(
    request: Request, name: FindingId, seen: int, decision: Decision, reason: str, now: FindingDetail | None
) -> Case:
    t, write = words(request), pen(request)
    tried = [
        Pair(t("Decision"), t(str(decision).replace("_", " "))),
        Pair(t("Reason"), reason),
        Pair(t("Seen at revision"), write.number(seen)),
    ]
    if now is None:
        return Case(name, "", tried, [Pair(t("Finding"), t("It is gone."))])
    view = now.view
    place = f"{view.finding.path or ''}{':' + str(view.finding.line) if view.finding.line else ''}"
    is_now = [
        Pair(t("Decision"), t(str(view.decision).replace("_", " "))),
        Pair(t("Reason"), view.review.reason),
        Pair(t("Who"), view.decided_by),
        Pair(t("When"), write.when(view.decided_at)),
        Pair(t("Revision"), write.number(view.review.revision)),
    ]
    return Case(f"{view.finding.rule} · {place}", url(request, f"{ROOT}/findings/{view.id}"), tried, is_now)


def _shown(
    c: Connection, analysis_id: AnalysisId, ids: Sequence[FindingId]
) -> tuple[AnalysisView, list[FindingDetail]]:
    """The analysis, and these of its findings that are there."""
    view, there = analysis(c, analysis_id).view, []
    for name in ids:
        try:
            there.append(finding(c, name))
        except NotFound:
            continue
    return view, there


def _all_wanted(
    c: Connection, analysis_id: AnalysisId, request: Request, who: Who
) -> tuple[Mapping[FindingId, int], bool]:
    """All findings that the address asks for, as they are now, and whether there are more than one decision takes."""
    asked = wanted(request.query_params, sees=who.may(Right.DOCUMENTS))
    page = findings(c, analysis_id, asked.filter, limit=LIMITS.page_max).page
    return {view.id: view.review.revision for view in page.items}, page.next is not None


def _back(
    request: Request, analysis_id: str, meant: Meant, *, n: int | None = None, decision: Decision | None = None
) -> str:
    """The page from which it was asked, with what was done if it was."""
    if meant.one:
        (name,) = list(chosen_from([meant.chosen]))[:1]
        return url(request, f"{ROOT}/findings/{name}", **{"n": n, "as": decision, "said": decision and "decided"})
    asked = {name: values for name, values in parse_qs(meant.asked[:4_000]).items() if name in NAMES}
    done = {"n": n, "as": decision, "said": decision and "decided"}
    return url(request, f"{ROOT}/analyses/{analysis_id}/findings", **asked, **done)


def _decision(text: str) -> Decision:
    if text not in list(Decision):
        raise Invalid("That is no decision.", field="to", limit=", ".join(Decision))
    return Decision(text)
