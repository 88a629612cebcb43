"""The gate of a project: what it lets through, set by who reviews, at the revision that they saw (spec D-17, D-21)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from sqlalchemy import Connection
from starlette.datastructures import FormData

from testigo.access.roles import Right
from testigo.authority.actions import new_id
from testigo.errors import Invalid, RevisionMismatch
from testigo.evidence.gates import GateSet, set_gate
from testigo.evidence.listing import analyses
from testigo.evidence.model import AnalysisId, AnalysisView, ProjectView
from testigo.evidence.projects import project
from testigo.rules import fields
from testigo.rules.evidence.gate import Policy, Thresholds
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.settings import LIMITS
from testigo.web.api.exact import read
from testigo.web.door import AtDoor, order
from testigo.web.panel.actions import REASON_CHARS_MAX, checked_reason
from testigo.web.panel.pages import ROOT, pen, render, url, words
from testigo.web.panel.reviewing import Case, Pair, changed
from testigo.web.panel.words import Words
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["policy_of", "routes", "told_policy"]

routes = Routes("/projects/gate", in_schema=False)

BASELINES = 20
"""Published analyses that are offered as a baseline, the newest."""

ANALYSERS_MAX = 50
"""Analysers with limits of their own."""

_ALL = "*"
"""In a field's name, in the place of an analyser: all that have no limits of their own."""

Name = Annotated[str, Query(max_length=LIMITS.name_chars_max)]
Tried = Annotated[str, Query(max_length=10_000)]


@routes.get("", Right.REVIEW)
async def ask(
    request: Request,
    door: AtDoor,
    who: Caller,
    name: Name,
    tried: Tried = "",
    baseline: str | None = None,
    reason: str = "",
) -> Response:
    """The form, with the gate as it is, or with what was tried and met another gate than was seen."""
    view, past = await door.read(_seen, name)
    policy = Policy.from_json(read(tried.encode())) if tried else view.policy
    chosen = baseline if tried else view.baseline
    return _asks(request, who, view, past, policy, chosen, view.policy_revision, new_id(), reason)


@routes.post("", Right.REVIEW)
async def set_it(request: Request, door: AtDoor, who: Caller) -> Response:
    """Set it, and have the newest analysis judged by it."""
    form = await request.form()
    name, action_id = fields.name(_text(form, "name"), field="name"), _text(form, "action_id")
    fields.must_be_id(action_id, field="action_id")
    revision, baseline = _whole(_text(form, "revision"), "revision"), _text(form, "baseline") or None
    typed = _text(form, "reason")
    view, past = await door.read(_seen, name)
    try:
        policy = policy_of(form)
        reason = checked_reason(typed, needed=True)
    except Invalid as error:
        return _asks(request, who, view, past, _as_far(form, view), baseline, revision, action_id, typed, error)
    asked = order(request, who, Right.REVIEW, "gates.set", [f"project:{name}"], reason, action_id=action_id)

    def command(c: Connection) -> GateSet:
        return set_gate(
            c,
            name,
            policy,
            expected_revision=revision,
            baseline=None if baseline is None else AnalysisId(baseline),
            reason=reason,
            action=asked.action,
        )

    try:
        await door.act(asked, command)
    except RevisionMismatch as refusal:
        return await _changed(request, door, who, name, policy, baseline, typed, revision, refusal)
    return RedirectResponse(url(request, f"{ROOT}/projects/show", name=name, said="gate"), 303)


def policy_of(form: FormData) -> Policy:
    """The policy that a form describes. Raises `Invalid` naming the limit that is no number."""
    own = [str(each) for each in form.getlist("apart")][:ANALYSERS_MAX]
    return Policy(
        _limits(form, _ALL),
        {fields.name(analyser, field="apart"): _limits(form, analyser) for analyser in own},
        new_only=bool(_text(form, "new_only")),
        honour_suppressions=bool(_text(form, "honour_suppressions")),
    )


def told_policy(policy: Policy, t: Words) -> list[str]:
    """What a policy lets through, each thing a sentence."""
    said = [_told_limits(policy.thresholds, None, t)]
    said += [_told_limits(own, analyser, t) for analyser, own in sorted(policy.by_analyser.items())]
    if policy.new_only:
        said.append(t("What the baseline has does not count."))
    if policy.honour_suppressions:
        said.append(t("What the source itself suppresses does not count."))
    return said


def _told_limits(limits: Thresholds, analyser: str | None, t: Words) -> str:
    told = ", ".join(
        t("{most} {severity}", most=limits[severity], severity=t(str(severity)))
        if limits[severity]
        else t("no {severity}", severity=t(str(severity)))
        for severity in SEVERITIES
        if severity in limits
    )
    if analyser is None:
        return t("At most: {limits}.", limits=told) if told else t("Nothing is limited.")
    if not told:
        return t("By {analyser} nothing is limited.", analyser=analyser)
    return t("By {analyser} at most: {limits}.", analyser=analyser, limits=told)


def _asks(
    request: Request,
    who: Caller,
    view: ProjectView,
    past: Sequence[AnalysisView],
    policy: Policy,
    baseline: str | None,
    revision: int,
    action_id: str,
    reason: str,
    error: Invalid | None = None,
) -> Response:
    known = sorted({*policy.by_analyser, *(name for each in past[:1] for name in each.analysers)})
    rows: list[tuple[str, bool, Mapping[Severity, int]]] = [(_ALL, False, policy.thresholds)]
    rows += [(name, name in policy.by_analyser, policy.by_analyser.get(name, {})) for name in known]
    t = words(request)
    return render(
        request,
        "gate.html",
        title=t("The gate of {project}", project=view.name),
        who=who,
        status=200 if error is None else error.http_status,
        view=view,
        rows=rows,
        policy=policy,
        past=past,
        baseline=baseline,
        offered={each.id for each in past},
        revision=revision,
        action_id=action_id,
        reason=reason,
        reason_max=REASON_CHARS_MAX,
        severities=SEVERITIES,
        field=None if error is None else error.field,
        error="" if error is None else t(error.message),
        back=url(request, f"{ROOT}/projects/show", name=view.name),
    )


async def _changed(
    request: Request,
    door: AtDoor,
    who: Caller,
    name: str,
    policy: Policy,
    baseline: str | None,
    reason: str,
    revision: int,
    error: RevisionMismatch,
) -> Response:
    t, write = words(request), pen(request)
    view, _ = await door.read(_seen, name)
    tried = [
        Pair(t("Gate"), _lines(told_policy(policy, t))),
        Pair(t("Reason"), reason),
        Pair(t("Seen at revision"), write.number(revision)),
    ]
    now = [
        Pair(t("Gate"), _lines(told_policy(view.policy, t))),
        Pair(t("Reason"), view.policy_reason),
        Pair(t("Who"), view.policy_by),
        Pair(t("When"), write.when(view.policy_at)),
        Pair(t("Revision"), write.number(view.policy_revision)),
    ]
    address = url(request, f"{ROOT}/projects/show", name=name)
    kept = json.dumps(policy.to_json(), separators=(",", ":"))
    again = url(request, f"{ROOT}/projects/gate", name=name, tried=kept, baseline=baseline, reason=reason)
    return changed(request, who, error, [Case(name, address, tried, now)], again=again, back=address)


def _lines(said: Sequence[str]) -> Markup:
    return Markup("<br>").join(said)


def _seen(c: Connection, name: str) -> tuple[ProjectView, list[AnalysisView]]:
    """The project, and its newest published analyses."""
    view = project(c, name)
    past = analyses(c, project=name, limit=BASELINES * 2).items
    return view, [each for each in past if each.persisted][:BASELINES]


def _limits(form: FormData, analyser: str) -> dict[Severity, int]:
    found = {}
    for severity in SEVERITIES:
        if text := _text(form, f"most.{analyser}.{severity}"):
            found[severity] = _whole(text, f"most.{analyser}.{severity}")
    return found


def _as_far(form: FormData, view: ProjectView) -> Policy:
    """What of a form that is refused can be read, so that it need not be typed again."""
    try:
        return policy_of(form)
    except Invalid:
        return view.policy


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(fields.INTEGER_MAX))):
        raise Invalid("A whole number is needed, or nothing.", field=name)
    return fields.whole(int(text), field=name, low=0, high=fields.INTEGER_MAX)


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""
