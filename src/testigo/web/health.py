"""Whether this server lives, and whether it can answer: for supervisors and load balancers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.errors import Broken, Busy
from testigo.store.sql import Statement
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Open, Routes

__all__ = ["routes"]

routes = Routes("/health", tags=["health"])


class Live(BaseModel):
    """This process answers. Nothing is said of what it holds."""

    status: Literal["live"] = "live"


class Check(BaseModel):
    """One thing that has to be so, and why it is not."""

    name: Annotated[str, Field(examples=["database"])]
    ok: bool
    reason: Annotated[str, Field(examples=["The database did not answer in 5 seconds."])] = ""


class Ready(BaseModel):
    """Whether everything is as it has to be, check by check."""

    status: Literal["ready", "hindered"]
    checks: list[Check]


_WRITABLE = Statement("SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only")


@routes.get(
    "/live",
    Open.HEALTH,
    **told("get_live", "Tell that the server lives", shows={"status": "live"}, anyone=True),
)
async def live() -> Live:
    """Tell that this process lives: it asks no database, so a database that is away is no reason to restart it."""
    return Live()


@routes.get(
    "/ready",
    Right.READ,
    **told(
        "get_ready",
        "Tell whether the server can answer",
        shows={"status": "ready", "checks": [{"name": "database", "ok": True, "reason": ""}]},
        also={503: "Something hinders it; the checks tell what. Or, as a problem: the database does not answer."},
    ),
)
async def ready(request: Request, response: Response, door: AtDoor) -> Ready:
    """Tell whether this server can answer and act, and what hinders it if not.

    While the database does not answer, nobody can be known: then this is refused with 503 as any other request.
    """
    standing = request.app.state.hub.standing
    hindered = request.app.state.background.hindered
    checks = [
        await _database(door),
        Check(name="signals", ok=not standing.stale, reason="Streams tell nothing new." if standing.stale else ""),
        *(Check(name=name, ok=False, reason=reason) for name, reason in hindered.items()),
    ]
    is_ready = all(check.ok for check in checks)
    response.status_code = 200 if is_ready else 503
    return Ready(status="ready" if is_ready else "hindered", checks=checks)


async def _database(door: AtDoor) -> Check:
    try:
        await door.read(_look)
    except (Broken, Busy) as error:
        return Check(name="database", ok=False, reason=f"{error.message} {error.remedy}")
    return Check(name="database", ok=True)


def _look(c: Connection) -> None:
    row = _WRITABLE.rows(c)[0]
    if row.standby or row.read_only == "on":
        raise Broken("The database takes no changes.", remedy="Point to the primary server.")
