"""The audit: who did what, to what, why, and how it ended; and whether nobody changed it since (panel.md *Audit*)."""

from __future__ import annotations

from dataclasses import fields as members
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi import Query as Asked
from sqlalchemy import Connection

from testigo.access.audit import AuditView, Verified, audits, verify
from testigo.access.roles import Right
from testigo.authority.read import Cursor, Page
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.web.door import AtDoor
from testigo.web.panel.exported import ROWS_MAX, csv_file
from testigo.web.panel.pages import render
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("", in_schema=False)

SHOWN = 50
FILE_PAGE = 1_000
VERIFIED_AT_ONCE = 20_000
"""Rows whose chain one page verifies; it goes on from there."""

COLUMNS = tuple(member.name for member in members(AuditView))

After = Annotated[str | None, Asked(alias="after")]
Verifying = Annotated[int | None, Asked(alias="verify", ge=0, le=fields.BIGINT_MAX)]


class Wanted:
    """What of the audit is asked for, as a form sends it: empty fields ask for nothing."""

    def __init__(
        self,
        who: Annotated[str, Asked(alias="actor")] = "",
        what: Annotated[str, Asked(alias="action")] = "",
        object: Annotated[str, Asked()] = "",  # noqa: A002
        since: Annotated[str, Asked(alias="from")] = "",
        until: Annotated[str, Asked(alias="to")] = "",
    ) -> None:
        self.who = who.strip() or None
        self.what = what.strip() or None
        self.object = object.strip() or None
        self.since = since.strip()
        self.until = until.strip()

    def look(self, c: Connection, before: Cursor | None, limit: int) -> Page[AuditView]:
        """A page of what is asked for."""
        since, until = _moment(self.since, "from"), _moment(self.until, "to")
        wanted = {"who": self.who, "what": self.what, "object": self.object}
        return audits(c, **wanted, since=since, until=until, before=before, limit=limit)


@routes.get("/audit", Right.AUDIT)
async def audit_page(
    request: Request,
    door: AtDoor,
    who: Caller,
    wanted: Annotated[Wanted, Depends()],
    after: After = None,
    verifying: Verifying = None,
) -> Response:
    """The rows that are asked for, the newest first; with `verify`, whether the chain behind that row is whole."""
    found = await door.read(wanted.look, None if after is None else Cursor(after), SHOWN)
    checked = None if verifying is None else await door.read(_verified, verifying)
    return render(
        request,
        "audit.html",
        title="Audit",
        who=who,
        topics=["audit"] if after is None and verifying is None else [],
        found=found,
        wanted=wanted,
        checked=checked,
        checked_from=verifying or 0,
        file_rows=ROWS_MAX,
    )


@routes.get("/audit.csv", Right.AUDIT)
async def audit_file(door: AtDoor, wanted: Annotated[Wanted, Depends()]) -> Response:
    """The newest of the rows that are asked for, as a file."""
    rows: list[AuditView] = []
    after: Cursor | None = None
    for _ in range(ROWS_MAX // FILE_PAGE):
        page = await door.read(wanted.look, after, FILE_PAGE)
        rows += page.items
        after = page.next
        if after is None:
            break
    return csv_file("audit", COLUMNS, ([getattr(row, name) for name in COLUMNS] for row in rows))


def _verified(c: Connection, after: int) -> Verified:
    """The chain behind a row, as much of it as one page verifies."""
    checked = 0
    while True:
        found = verify(c, after=after)
        checked += found.checked
        after = found.upto
        if not found.more or checked >= VERIFIED_AT_ONCE:
            return replace(found, checked=checked)


def _moment(text: str, field: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid("That is no time.", field=field, remedy="Write 2026-11-30 or 2026-11-30T09:15, in UTC.") from None
    return fields.moment(at if at.tzinfo else at.replace(tzinfo=UTC), field=field)
