"""Queues: what waits in each, how fast it goes, who serves it; and one of them over time."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from testigo.access.roles import Right
from testigo.authority.pause import Scope
from testigo.authority.read.pages import Cursor
from testigo.authority.read.queues import queue
from testigo.authority.read.sessions import SessionState, sessions
from testigo.settings import LIMITS
from testigo.statistics.read import series
from testigo.web.door import AtDoor
from testigo.web.panel.attempts import attempt
from testigo.web.panel.pages import pen, render, words
from testigo.web.panel.pausing import add_pausing
from testigo.web.panel.plots import MEASURES, charts, span_of
from testigo.web.panel.standing import queue_rows, rows_of
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/queues", in_schema=False)
add_pausing(routes, Scope.QUEUE)

_PAGE = 50


@routes.get("", Right.READ)
async def every(request: Request, door: AtDoor, who: Caller, after: str | None = None) -> HTMLResponse:
    """All queues, by name."""
    page = await queue_rows(door, after=None if after is None else Cursor(after), limit=_PAGE)
    return render(request, "queues.html", title="Queues", who=who, topics=("jobs", "pauses", "workers"), queues=page)


@routes.get("/show", Right.READ)
async def show(
    request: Request, door: AtDoor, who: Caller, name: Annotated[str, Query(max_length=LIMITS.name_chars_max)]
) -> HTMLResponse:
    """One queue: what waits, who serves it, and what went through."""
    span = span_of(request)
    view, found, live = await asyncio.gather(
        door.read(queue, name),
        attempt(door, series, MEASURES, span, queue=name),
        attempt(door, sessions, state=SessionState.OPEN, limit=LIMITS.page_max),
    )
    (row,) = await rows_of(door, (view,))
    return render(
        request,
        "queue.html",
        title=name,
        who=who,
        topics=(f"queue:{name}", "pauses", "workers"),
        row=row,
        serving=[each for each in live.items if name in each.queues] if live else [],
        span=span,
        charts=[] if found is None else charts(found, words(request), pen(request)),
        result=request.query_params.get("said"),
    )
