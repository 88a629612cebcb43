"""Workers: the sessions that are open, what each of them runs now, and those that are over; one can be drained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse

from testigo.access.roles import Right
from testigo.authority.actions import SessionId
from testigo.authority.read.held import held_by
from testigo.authority.read.pages import Cursor
from testigo.authority.read.sessions import SessionState, SessionView, session, sessions
from testigo.authority.sessions import drain_session
from testigo.rules import fields
from testigo.web.door import AtDoor, order
from testigo.web.panel.asking import ActionId, Name, Question, Reason, ask, done
from testigo.web.panel.attempts import attempt
from testigo.web.panel.pages import ROOT, render, url, words
from testigo.web.routes import Routes
from testigo.web.signals.hub import Hub
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/workers", in_schema=False)

_PAGE = 50
_HELD = 5
"""Jobs that the list shows of each worker; its own page shows more."""
_HELD_SHOWN = 200
_OVER = (SessionState.CLOSED, SessionState.REPLACED, SessionState.DEAD)

Asked = Annotated[str, Query(max_length=64)]


@routes.get("", Right.READ)
async def every(request: Request, door: AtDoor, who: Caller, state: str = "", after: str | None = None) -> HTMLResponse:
    """Those that live, or with `state` those that are over, the newest first."""
    before = None if after is None else Cursor(after)
    if state:
        wanted = fields.member(state, SessionState, field="state")
        page = await attempt(door, sessions, state=wanted, before=before, limit=_PAGE)
        found, following = (page.items, page.next) if page else (None, None)
    else:
        live = [
            await attempt(door, sessions, state=each, limit=_PAGE)
            for each in (SessionState.OPEN, SessionState.DRAINING)
        ]
        found, following = _newest(*(page.items for page in live if page)), None
    held = await attempt(door, held_by, [each.id for each in found or ()], limit=_HELD)
    return render(
        request,
        "workers.html",
        title="Workers",
        who=who,
        topics=("workers", "beats", "jobs"),
        workers=found,
        next=following,
        held=held or {},
        beats=_beats(request, found or ()),
        state=state,
        over=_OVER,
    )


@routes.get("/show", Right.READ)
async def show(
    request: Request, door: AtDoor, who: Caller, session_id: Annotated[str, Query(alias="session")]
) -> HTMLResponse:
    """One of them: what it said of itself, and what it holds."""
    view, held = await asyncio.gather(
        door.read(session, SessionId(session_id)),
        attempt(door, held_by, [SessionId(session_id)], limit=_HELD_SHOWN),
    )
    return render(
        request,
        "worker.html",
        title=view.agent,
        who=who,
        topics=("workers", "beats", "jobs"),
        worker=view,
        held=(held or {}).get(view.id, ()),
        beat=_beats(request, (view,))[view.id],
        result=request.query_params.get("said"),
    )


@routes.get("/drain", Right.DRAIN)
async def ask_drain(
    request: Request, door: AtDoor, who: Caller, session_id: Annotated[str, Query(alias="session")]
) -> HTMLResponse:
    """Is it meant?"""
    t = words(request)
    view = await door.read(session, SessionId(session_id))
    effects = [
        t("It is told with its next beat, and claims nothing more."),
        t("It holds {n} job, finishes it, and ends. | It holds {n} jobs, finishes them, and ends.", n=view.leases),
        t("It cannot be taken back; whatever supervises it may start another in its place."),
    ]
    question = Question(
        t("Drain the worker {name}?", name=view.agent),
        effects,
        t("Drain"),
        f"{ROOT}/workers/drain",
        url(request, f"{ROOT}/workers/show", session=session_id),
        {"session": session_id},
    )
    return ask(request, who, question)


@routes.post("/drain", Right.DRAIN)
async def drain(
    request: Request, door: AtDoor, who: Caller, session: Name, action_id: ActionId, reason: Reason = ""
) -> Response:
    """Ask it to finish."""
    asked = order(request, who, Right.DRAIN, "workers.drain", (f"session:{session}",), reason, action_id=action_id)
    await door.act(asked, lambda c: drain_session(c, SessionId(session)))
    return done(request, f"{ROOT}/workers/show", "drained", session=session)


def _beats(request: Request, found: Sequence[SessionView]) -> dict[SessionId, float | None]:
    """For how many seconds each has been seen without a new beat, by this server, which watches those that are open."""
    hub: Hub = request.app.state.hub
    return {each.id: hub.beat_age_seconds(each.id) for each in found}


def _newest(*found: tuple[SessionView, ...]) -> tuple[SessionView, ...]:
    return tuple(sorted((each for part in found for each in part), key=lambda each: each.id, reverse=True))
