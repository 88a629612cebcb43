"""All routes of the API."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi.responses import JSONResponse

from testigo.web import health, metrics
from testigo.web.api import (
    analyses,
    artifacts,
    audit,
    events,
    findings,
    jobs,
    kinds,
    operations,
    overview,
    projects,
    queues,
    receipts,
    statistics,
    workers,
)
from testigo.web.api.openapi import document
from testigo.web.routes import Open, Routes

__all__ = ["PREFIX", "routes"]

PREFIX = "/api/v1"
"""Below it everything is of this version: what a member means does not change, and none goes."""

routes = Routes(PREFIX)

routes.include(
    overview.routes,
    *jobs.parts,
    operations.routes,
    queues.routes,
    kinds.routes,
    workers.routes,
    events.routes,
    receipts.routes,
    statistics.routes,
    projects.routes,
    analyses.routes,
    findings.routes,
    artifacts.routes,
    audit.routes,
    health.routes,
    metrics.routes,
)


@routes.get("/openapi.json", Open.STATIC, include_in_schema=False)
async def get_document() -> JSONResponse:
    """The OpenAPI document of this release."""
    return JSONResponse(_document())


@cache
def _document() -> dict[str, Any]:
    return document(routes.router)
