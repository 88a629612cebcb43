"""What has failed for good and waits for somebody, by its cause (panel.md *Failed jobs*)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query as Asked
from fastapi import Request, Response
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.authority.read import Failures, Filter, JobSummary, causes, jobs
from testigo.errors import Invalid
from testigo.operations import Verb
from testigo.web.api.veil import REDACTED, veiled_summary
from testigo.web.door import AtDoor
from testigo.web.panel.pages import render
from testigo.web.panel.reasons import WHY
from testigo.web.panel.search import quoted
from testigo.web.panel.verbs import ACTS
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/failed", in_schema=False)

CAUSES_SHOWN = 50
JOBS_SHOWN = 20

SINCE = {"1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30), "any": None}
"""How far back the page looks, by the word for it in a search."""

Since = Annotated[str, Asked(alias="since")]
Cause = Annotated[str | None, Asked(alias="cause", pattern="^([0-9a-f]{16}|none)$")]


@routes.get("", Right.READ)
async def failed_page(
    request: Request,
    door: AtDoor,
    who: Caller,
    queue: str = "",
    since: Since = "7d",
    cause: Cause = None,
) -> Response:
    """The causes of what is open, those of the most jobs first; the jobs of one of them, at first of the largest."""
    if since not in SINCE:
        raise Invalid("That is no span of this page.", field="since", limit=", ".join(SINCE))
    found, shown, members = await door.read(_look, queue.strip() or None, SINCE[since], cause)
    if not who.may(Right.DOCUMENTS):
        members = tuple(map(veiled_summary, members))
    return render(
        request,
        "failed.html",
        title="Failed jobs",
        who=who,
        topics=["jobs"],
        found=found,
        shown=shown,
        members=members,
        queue=queue.strip(),
        since=since,
        spans=list(SINCE),
        asked=" ".join([f"queue:{quoted(queue.strip())}"] * bool(queue.strip()) + [f"after:{since}"]),
        retry=ACTS[Verb.RETRY],
        verbs=[(verb, ACTS[verb]) for verb in (Verb.RETRY, Verb.FORGET) if who.may(ACTS[verb].right)],
        why=WHY,
        hidden=None if who.may(Right.DOCUMENTS) else REDACTED,
    )


def _look(
    c: Connection, queue: str | None, back: timedelta | None, cause: str | None
) -> tuple[Failures, str | None, tuple[JobSummary, ...]]:
    """The causes, which of them is shown with its jobs, and those."""
    after = None if back is None else datetime.now(UTC) - back
    found = causes(c, queue=queue, created_after=after, limit=CAUSES_SHOWN)
    shown = cause or (found.causes[0].id if found.causes else None)
    if shown is None or shown == "none":
        return found, None, ()
    wanted = Filter(cause=shown, unresolved=True, queue=queue, created_after=after)
    return found, shown, jobs(c, wanted, limit=JOBS_SHOWN).items
