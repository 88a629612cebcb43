"""Kinds of jobs: who runs them, what of them waits, and what is paused."""

from __future__ import annotations

import asyncio

from fastapi import Request
from fastapi.responses import HTMLResponse

from testigo.access.roles import Right
from testigo.authority.pause import Scope
from testigo.authority.read.kinds import kinds
from testigo.statistics.model import Span
from testigo.statistics.read import By, totals
from testigo.web.door import AtDoor
from testigo.web.panel.attempts import attempt
from testigo.web.panel.pages import render
from testigo.web.panel.pausing import add_pausing
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/kinds", in_schema=False)
add_pausing(routes, Scope.KIND)


@routes.get("", Right.READ)
async def every(request: Request, door: AtDoor, who: Caller) -> HTMLResponse:
    """All kinds that are known, by name, each with its last day."""
    found, past = await asyncio.gather(attempt(door, kinds), attempt(door, totals, Span.DAY, by=By.KIND))
    return render(
        request,
        "kinds.html",
        title="Kinds",
        who=who,
        topics=("jobs", "pauses", "workers"),
        kinds=found,
        past={each.name: each for each in past or ()},
        result=request.query_params.get("said"),
        changed=request.query_params.get("name"),
    )
