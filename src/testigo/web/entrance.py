"""What somebody finds who types the host and the port alone: the way to the panel."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from testigo.web.routes import Open, Routes
from testigo.web.security.place import url

__all__ = ["routes"]

routes = Routes(in_schema=False)


@routes.get("/", Open.LOGIN)
async def enter(request: Request) -> Response:
    """Lead to the panel, which asks who is there."""
    return RedirectResponse(url(request, "/horizon"), status_code=307)
