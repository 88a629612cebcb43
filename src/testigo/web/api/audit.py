"""The audit: who did what, when, to what, why, and how it ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from testigo.access.audit import Result, audits
from testigo.access.roles import Right
from testigo.errors import CursorInvalid
from testigo.web.api import examples
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.shapes import Moment, PageShape, Shape
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("/audit", tags=["audit"])


class AuditRowShape(Shape):
    """A row of the audit, counted from 1. Its `chain` covers all the rest of it and the chain of the row before."""

    n: int
    at: Moment
    actor: str
    role: str
    via: str
    credential: str
    """The id of the login or token."""
    what: str
    objects: tuple[str, ...]
    reason: str
    result: Result
    code: str | None
    """The code of the error by which it was refused."""
    action: str
    asked_at: Moment
    digest: str
    address: str | None
    request: str | None
    """The request's id."""
    chain: str


class AuditQuery(PageQuery):
    """Which rows: those that have all of what is given."""

    who: str | None = None
    """The actor: user:ana, token:deploy."""
    what: str | None = None
    """What was done: jobs.cancel."""
    object: str | None = None
    """To what it was done: job:<id>, queue:media."""
    since: Moment | None = None
    """At this time, or later."""
    until: Moment | None = None
    """Before this time."""


@routes.get(
    "",
    Right.AUDIT,
    **told("list_audit", "List the audit", shows=examples.page(examples.AUDIT), refuses=(CursorInvalid,)),
)
async def list_audit(asked: Annotated[AuditQuery, Query()], request: Request, door: AtDoor) -> PageShape[AuditRowShape]:
    """List who did what, from the newest. One page looks at 10,000 rows at most: see `complete`."""
    wanted = {name: getattr(asked, name) for name in ("who", "what", "object", "since", "until")}
    found = await door.read(audits, **wanted, before=asked.cursor, limit=asked.limit)
    return PageShape(
        items=tuple(map(AuditRowShape.model_validate, found.items)),
        next=next_address(request, found.next),
        complete=found.complete,
    )
