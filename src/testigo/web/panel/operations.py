"""One action over many jobs: chosen, asked for, followed, stopped (panel.md *Access, actions, audit*).

What was chosen travels in the page that asks: named jobs, or a search whose times are written out, so that
nothing is in it that was submitted after somebody looked. The authority freezes it when it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Form, Request, Response
from fastapi import Query as Asked
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import JobId, new_id
from testigo.authority.read import Count, Cursor, Page
from testigo.errors import Invalid
from testigo.operations import (
    Item,
    Operation,
    OperationId,
    OperationState,
    Outcome,
    Preview,
    Selection,
    Verb,
    begin,
    items,
    operation,
    operations,
    preview,
    stop,
)
from testigo.rules import fields
from testigo.rules.states import TERMINAL
from testigo.web.door import AtDoor, order
from testigo.web.panel.actions import checked_reason
from testigo.web.panel.jobs import search
from testigo.web.panel.pages import ROOT, render, url, words
from testigo.web.panel.search import Query
from testigo.web.panel.verbs import ACTS
from testigo.web.panel.words import Words
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/operations", in_schema=False)

SHOWN = 50

Typed = Annotated[str, Asked(alias="q")]
Ids = Annotated[list[str], Asked(alias="id", default_factory=list)]
After = Annotated[str | None, Asked(alias="after")]
Only = Annotated[Outcome | None, Asked(alias="outcome")]


class Meant(BaseModel):
    """What the form sends: which order it is, what was chosen, and why."""

    action_id: str
    q: str = ""
    id: list[str] = []
    reason: str = ""


class Stopping(BaseModel):
    """What the form of a stop sends."""

    action_id: str


@routes.get("", Right.READ)
async def operations_page(request: Request, door: AtDoor, who: Caller, after: After = None) -> Response:
    """What was done to many jobs at once, the newest first."""
    found = await door.read(operations, before=None if after is None else Cursor(after), limit=SHOWN)
    return render(
        request, "operations.html", title="Operations", who=who, topics=["operations"], found=found, acts=ACTS
    )


@routes.get("/choose", Right.READ)
async def choose(request: Request, door: AtDoor, who: Caller, q: Typed = "") -> Response:
    """What may be done to all jobs that a search finds, and to how many of them."""
    selection, query = _selection(Meant(action_id="", q=q), who)
    allowed = [verb for verb, act in ACTS.items() if who.may(act.right)]
    found = await door.read(_previews, allowed, selection)
    return render(
        request,
        "choose.html",
        title="What shall be done?",
        who=who,
        query=query,
        choices=[(verb, ACTS[verb], each) for verb, each in zip(allowed, found, strict=True)],
    )


@routes.get("/{operation_id}", Right.READ)
async def operation_page(
    request: Request, operation_id: str, door: AtDoor, who: Caller, outcome: Only = None, after: After = None
) -> Response:
    """How far an operation is, and what became of each job."""
    wanted = None if after is None else Cursor(after)
    one, found = await door.read(_look, OperationId(operation_id), outcome, wanted)
    act = ACTS[one.verb]
    return render(
        request,
        "operation.html",
        title=words(request)(act.many, n=one.total).strip("¿?"),
        who=who,
        topics=["operations"] * (one.state is OperationState.RUNNING) + ["jobs"] * _goes_on(found),
        operation=one,
        act=act,
        found=found,
        outcome=outcome,
        outcomes=list(Outcome),
        may_stop=one.state is OperationState.RUNNING and who.may(Right.CANCEL) and who.may(act.right),
        action_id=new_id(),
        result=one.actor == who.actor and after is None and outcome is None,
    )


@routes.post("/{operation_id}/stop", Right.CANCEL)
async def stop_operation(
    request: Request, operation_id: str, door: AtDoor, who: Caller, asked: Annotated[Stopping, Form()]
) -> Response:
    """Leave the rest of an operation undone; it needs the right that the operation needed."""
    fields.must_be_id(asked.action_id, field="action_id")
    one = await door.read(operation, OperationId(operation_id))
    wanted = order(
        request,
        who,
        ACTS[one.verb].right,
        "operations.stop",
        (f"operation:{one.id}",),
        "stopped in the panel",
        action_id=asked.action_id,
    )
    await door.act(wanted, lambda c: stop(c, one.id, action=wanted.action))
    return RedirectResponse(url(request, f"{ROOT}/operations/{one.id}"), 303)


def _add(verb: Verb) -> None:
    act = ACTS[verb]

    @routes.get(f"/{verb}/confirm", act.right)
    async def confirm(
        request: Request,
        door: AtDoor,
        who: Caller,
        ids: Ids,
        q: Typed = "",
        reason: str = "",
    ) -> Response:
        meant = Meant(action_id=new_id(), q=q, id=ids, reason=reason)
        return await _confirm(request, who, door, verb, meant)

    @routes.post(f"/{verb}", act.right)
    async def do(request: Request, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]) -> Response:
        fields.must_be_id(meant.action_id, field="action_id")
        try:
            reason = checked_reason(meant.reason, needed=True)
        except Invalid as error:
            return await _confirm(request, who, door, verb, meant, error)
        selection, _ = _selection(meant, who)
        name = OperationId(meant.action_id)
        asked = order(
            request, who, act.right, f"operations.{verb}", (f"operation:{name}",), reason, action_id=meant.action_id
        )
        begun = await door.act(
            asked, lambda c: begin(c, verb, selection, reason=reason, action=asked.action, operation_id=name)
        )
        return RedirectResponse(url(request, f"{ROOT}/operations/{begun.id}"), 303)


for _verb in Verb:
    _add(_verb)


async def _confirm(
    request: Request, who: Who, door: AtDoor, verb: Verb, meant: Meant, error: Invalid | None = None
) -> Response:
    t, act = words(request), ACTS[verb]
    if not meant.id and not meant.q:
        raise Invalid("No job was chosen.", field="id", remedy="Go back, and choose some.")
    selection, query = _selection(meant, who)
    found = await door.read(_preview, verb, selection)
    return render(
        request,
        "confirm.html" if found.count.n or found.count.more else "nothing.html",
        title=t(act.many, n=found.count),
        who=who,
        status=200 if error is None else error.http_status,
        act=act,
        action=url(request, f"{ROOT}/operations/{verb}"),
        action_id=meant.action_id,
        sample=found.sample,
        rest=_rest(found, len(meant.id), t),
        chips=query.chips if query else (),
        effects=(
            t(act.many_effect),
            t("It is done in the background, job by job; you see what became of each, and can stop it."),
        ),
        hidden=[("q", query.fixed)] if query else [("id", each) for each in meant.id],
        needs_reason=True,
        reason=meant.reason,
        error="" if error is None else t(error.message),
        button=t(act.button_many, n=found.count),
        back=url(request, f"{ROOT}/jobs", q=meant.q or None),
    )


def _selection(meant: Meant, who: Who) -> tuple[Selection, Query | None]:
    """The jobs that were chosen; and the search, where they were chosen by one."""
    if meant.id:
        return Selection(ids=tuple(dict.fromkeys(map(JobId, meant.id)))), None
    query = search(meant.q, datetime.now(UTC), sees=who.may(Right.DOCUMENTS))
    fixed = search(query.fixed, query.now, sees=True)
    return Selection(wanted=fixed.filter), fixed


def _rest(found: Preview, chosen: int, t: Words) -> str | None:
    """What the sample does not show: how many more there are, and what is left out."""
    if not found.complete:
        return t("Older jobs that match are counted when it begins, and are meant as well.")
    if chosen > found.count.n:
        left_out = chosen - found.count.n
        return t("{n} chosen job does not qualify, and is left out. | {n} chosen jobs do not qualify, and are left "
                 "out.", n=left_out)  # fmt: skip
    more = found.count.n - len(found.sample)
    return t("{n} more is not shown. | {n} more are not shown.", n=more) if more else None


def _previews(c: Connection, verbs: Sequence[Verb], selection: Selection) -> list[Preview]:
    return [_preview(c, verb, selection) for verb in verbs]


def _preview(c: Connection, verb: Verb, selection: Selection) -> Preview:
    """What an operation would be for; nothing, where it asks for states in which there is nothing to do."""
    try:
        return preview(c, verb, selection)
    except Invalid as error:
        if error.field != "states":
            raise
        return Preview(Count(0), (), complete=True)


def _goes_on(found: Page[Item]) -> bool:
    """Whether the state of a job that is shown may yet be another."""
    return any(item.now is not None and item.now not in TERMINAL for item in found.items)


def _look(
    c: Connection, operation_id: OperationId, outcome: Outcome | None, after: Cursor | None
) -> tuple[Operation, Page[Item]]:
    one = operation(c, operation_id)
    return one, items(c, operation_id, outcome=outcome, after=after, limit=SHOWN)
