"""A risk that a project takes, and a finding that is deleted: asked for first, as it was seen (spec D-18, D-23)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import new_id
from testigo.errors import Conflict, Invalid, RevisionMismatch, StateConflict
from testigo.evidence.exemptions import ExemptionSet, end_exemption, exempt
from testigo.evidence.findings import FindingDetail, finding
from testigo.evidence.model import FindingId, Identity
from testigo.evidence.review import DeletedFinding, delete_finding
from testigo.rules import fields
from testigo.settings import EVIDENCE
from testigo.web.door import AtDoor, Door, order
from testigo.web.panel.actions import REASON_CHARS_MAX, checked_reason
from testigo.web.panel.pages import ROOT, pen, render, url, words
from testigo.web.panel.reviewing import Case, Pair, changed
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/findings/{finding_id}", in_schema=False)

DAYS = 90
"""After how many days an exemption expires unless another day is said."""


class Meant(BaseModel):
    """What the form sends: which order it is, the revision that was seen, why, and until when."""

    action_id: str
    revision: int
    reason: str = ""
    until: str = ""


@routes.get("/exempt", Right.REVIEW)
async def ask_exempt(
    request: Request, finding_id: str, door: AtDoor, who: Caller, reason: str = "", until: str | None = None
) -> Response:
    """Is it meant?"""
    found = await door.read(finding, FindingId(finding_id))
    soon = (datetime.now(UTC) + timedelta(days=DAYS)).date().isoformat()
    meant = Meant(action_id=new_id(), revision=_revision(found), reason=reason, until=soon if until is None else until)
    return _asks_exempt(request, who, found, meant)


@routes.post("/exempt", Right.REVIEW)
async def do_exempt(
    request: Request, finding_id: str, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]
) -> Response:
    """Take the risk of this fingerprint in its project."""
    fields.must_be_id(meant.action_id, field="action_id")
    found = await door.read(finding, FindingId(finding_id))
    try:
        reason, until = checked_reason(meant.reason, needed=True), _end_of(meant.until)
    except Invalid as error:
        return _asks_exempt(request, who, found, meant, error)
    identity = Identity(found.view.finding.analyser, found.view.finding.fingerprint)
    objects = [f"exemption:{identity.fingerprint}"]
    asked = order(request, who, Right.REVIEW, "exemptions.grant", objects, reason, action_id=meant.action_id)

    def command(c: Connection) -> ExemptionSet:
        return exempt(
            c,
            found.project,
            identity,
            reason=reason,
            expected_revision=meant.revision,
            expires_at=until,
            action=asked.action,
        )

    try:
        await door.act(asked, command)
    except RevisionMismatch as error:
        return await _exemption_changed(request, who, door, found, meant, error, "exempt")
    except Invalid as error:
        if error.field not in ("expires_at", "reason"):
            raise
        return _asks_exempt(request, who, found, meant, error)
    return _done(request, finding_id, "exempted")


@routes.get("/unexempt", Right.REVIEW)
async def ask_end(request: Request, finding_id: str, door: AtDoor, who: Caller, reason: str = "") -> Response:
    """Is it meant?"""
    found = await door.read(finding, FindingId(finding_id))
    meant = Meant(action_id=new_id(), revision=_revision(found), reason=reason)
    return _asks_end(request, who, found, meant)


@routes.post("/unexempt", Right.REVIEW)
async def do_end(
    request: Request, finding_id: str, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]
) -> Response:
    """Take the exemption back."""
    fields.must_be_id(meant.action_id, field="action_id")
    found = await door.read(finding, FindingId(finding_id))
    try:
        reason = checked_reason(meant.reason, needed=True)
    except Invalid as error:
        return _asks_end(request, who, found, meant, error)
    identity = Identity(found.view.finding.analyser, found.view.finding.fingerprint)
    objects = [f"exemption:{identity.fingerprint}"]
    asked = order(request, who, Right.REVIEW, "exemptions.end", objects, reason, action_id=meant.action_id)

    def command(c: Connection) -> ExemptionSet:
        return end_exemption(
            c, found.project, identity, expected_revision=meant.revision, reason=reason, action=asked.action
        )

    try:
        await door.act(asked, command)
    except (RevisionMismatch, StateConflict) as error:
        return await _exemption_changed(request, who, door, found, meant, error, "unexempt")
    return _done(request, finding_id, "unexempted")


@routes.get("/delete", Right.FORGET)
async def ask_delete(request: Request, finding_id: str, door: AtDoor, who: Caller, reason: str = "") -> Response:
    """Is it meant?"""
    found = await door.read(finding, FindingId(finding_id))
    meant = Meant(action_id=new_id(), revision=found.view.review.revision, reason=reason)
    return _asks_delete(request, who, found, meant)


@routes.post("/delete", Right.FORGET)
async def do_delete(
    request: Request, finding_id: str, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]
) -> Response:
    """Remove the finding and what was decided about it."""
    fields.must_be_id(finding_id, field="finding")
    fields.must_be_id(meant.action_id, field="action_id")
    try:
        reason = checked_reason(meant.reason, needed=True)
    except Invalid as error:
        return _asks_delete(request, who, await door.read(finding, FindingId(finding_id)), meant, error)
    objects = [f"finding:{finding_id}"]
    asked = order(request, who, Right.FORGET, "findings.delete", objects, reason, action_id=meant.action_id)

    def command(c: Connection) -> DeletedFinding:
        return delete_finding(
            c, FindingId(finding_id), expected_revision=meant.revision, reason=reason, action=asked.action
        )

    try:
        done = await door.act(asked, command)
    except (RevisionMismatch, StateConflict) as error:
        found = await door.read(finding, FindingId(finding_id))
        return _finding_changed(request, who, found, meant, error)
    return RedirectResponse(url(request, f"{ROOT}/analyses/{done.analysis_id}/findings", said="deleted"), 303)


def _asks_exempt(
    request: Request, who: Who, found: FindingDetail, meant: Meant, error: Invalid | None = None
) -> Response:
    t = words(request)
    effects = [
        t("The gate of {project} does not count it, in this analysis and in later ones.", project=found.project),
        t("No finding is changed: decisions stay as they are."),
        t("It ends when its time is over, when it is taken back, or when a complete analysis finds it no more."),
    ]
    return _asks(request, who, found, meant, "exempt", "Exempt this finding in its project?", effects,
                 "Exempt it", error, until=True)  # fmt: skip


def _asks_end(request: Request, who: Who, found: FindingDetail, meant: Meant, error: Invalid | None = None) -> Response:
    t = words(request)
    effects = [t("It counts for the gate again, unless it is decided otherwise."), t("It can be exempted anew.")]
    return _asks(request, who, found, meant, "unexempt", "Take the exemption back?", effects,
                 "Take it back", error)  # fmt: skip


def _asks_delete(
    request: Request, who: Who, found: FindingDetail, meant: Meant, error: Invalid | None = None
) -> Response:
    t = words(request)
    effects = [
        t("The finding is removed, with what was decided about it. It cannot be taken back."),
        t("The gate of its analysis is evaluated without it."),
        t("What the project knows of its fingerprint stays, and the next analysis finds it again if it is there."),
    ]
    return _asks(request, who, found, meant, "delete", "Delete this finding?", effects,
                 "Delete it", error, danger=True)  # fmt: skip


def _asks(
    request: Request,
    who: Who,
    found: FindingDetail,
    meant: Meant,
    verb: str,
    title: str,
    effects: list[str],
    button: str,
    error: Invalid | None,
    *,
    until: bool = False,
    danger: bool = False,
) -> Response:
    t = words(request)
    return render(
        request,
        "exempt.html",
        title=title,
        who=who,
        status=200 if error is None else error.http_status,
        found=found,
        meant=meant,
        action=url(request, f"{ROOT}/findings/{found.view.id}/{verb}"),
        effects=effects,
        button=t(button),
        danger=danger,
        asks_until=until,
        days_max=EVIDENCE.exemption_days_max,
        reason_max=REASON_CHARS_MAX,
        field=None if error is None else ("until" if error.field in ("until", "expires_at") else "reason"),
        error="" if error is None else t(error.message),
        back=url(request, f"{ROOT}/findings/{found.view.id}"),
    )


async def _exemption_changed(
    request: Request, who: Who, door: Door, seen: FindingDetail, meant: Meant, error: Conflict, verb: str
) -> Response:
    t, write = words(request), pen(request)
    found = await door.read(finding, seen.view.id)
    kept = found.exemption
    tried = [
        Pair(t("Action"), t("Exempt") if verb == "exempt" else t("Take the exemption back")),
        Pair(t("Reason"), meant.reason),
        *([Pair(t("Until"), meant.until or t("for ever"))] if verb == "exempt" else []),
        Pair(t("Seen at revision"), write.number(meant.revision)),
    ]
    if kept is None:
        now = [Pair(t("Exemption"), t("There is none."))]
    else:
        now = [
            Pair(t("Exemption"), t(str(kept.state))),
            Pair(t("Reason"), kept.reason),
            Pair(t("Who"), kept.reviewer),
            Pair(t("Until"), write.when(kept.expires_at, whole=True) if kept.expires_at else t("for ever")),
            Pair(t("Revision"), write.number(kept.revision)),
        ]
    address = f"{ROOT}/findings/{found.view.id}"
    case = Case(found.view.finding.rule, url(request, address), tried, now)
    again = url(request, f"{address}/{verb}", reason=meant.reason, until=meant.until if verb == "exempt" else None)
    return changed(request, who, error, [case], again=again, back=url(request, address))


def _finding_changed(request: Request, who: Who, found: FindingDetail, meant: Meant, error: Conflict) -> Response:
    t, write, view = words(request), pen(request), found.view
    tried = [
        Pair(t("Action"), t("Delete")),
        Pair(t("Reason"), meant.reason),
        Pair(t("Seen at revision"), write.number(meant.revision)),
    ]
    now = [
        Pair(t("Decision"), t(str(view.decision).replace("_", " "))),
        Pair(t("Reason"), view.review.reason),
        Pair(t("Who"), view.decided_by),
        Pair(t("Revision"), write.number(view.review.revision)),
    ]
    address = url(request, f"{ROOT}/findings/{view.id}")
    again = url(request, f"{ROOT}/findings/{view.id}/delete", reason=meant.reason)
    return changed(request, who, error, [Case(view.finding.rule, address, tried, now)], again=again, back=address)


def _revision(found: FindingDetail) -> int:
    return 0 if found.exemption is None else found.exemption.revision


def _end_of(day: str) -> datetime | None:
    """The end of a day of UTC, as an exemption's; none for no day."""
    if not day.strip():
        return None
    try:
        return datetime.combine(date.fromisoformat(day.strip()) + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError):
        raise Invalid("That is no day.", field="until", remedy="Write it as 2026-11-30, or leave it empty.") from None


def _done(request: Request, finding_id: str, said: str) -> Response:
    return RedirectResponse(url(request, f"{ROOT}/findings/{finding_id}", said=said), 303)
