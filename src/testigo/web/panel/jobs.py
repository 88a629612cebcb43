"""The list of jobs, with its search; and the same as a file (panel.md *Jobs*)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query as Asked
from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from testigo.access.roles import Right
from testigo.authority.read import Count, Cursor, JobSummary, Page, jobs, states
from testigo.errors import AuthorityUnavailable, Busy, Invalid
from testigo.rules import fields
from testigo.rules.states import State
from testigo.web.api.veil import veiled_summary
from testigo.web.door import AtDoor, Door
from testigo.web.panel.exported import ROWS_MAX, csv_file
from testigo.web.panel.pages import ROOT, render, url
from testigo.web.panel.search import QUALIFIERS, Query, parse
from testigo.web.panel.verbs import ACTS
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes", "search"]

routes = Routes("", in_schema=False)

SHOWN = 50
"""Jobs of one page."""

FILE_PAGE = 1_000

VIEWS = (
    ("Failed", "state:failed"),
    ("Running", "state:leased,running,cancelling"),
    ("Waiting for a retry", "state:retry_waiting"),
    ("Blocked", "state:blocked_by_quality"),
    ("Failed before, and goes on", "state:ready,running,retry_waiting attempt>0"),
)
"""Searches that are asked for often, by their names."""

COLUMNS = (
    "id", "kind", "queue", "state", "reason", "error", "failures", "attempts", "losses", "client", "key", "tags",
    "created_at", "due_at", "started_at", "finished_at",
)  # fmt: skip

Typed = Annotated[str, Asked(alias="q")]
Since = Annotated[str | None, Asked(alias="at")]
After = Annotated[str | None, Asked(alias="after")]


@routes.get("/jobs", Right.READ)
async def jobs_page(
    request: Request, door: AtDoor, who: Caller, typed: Typed = "", since: Since = None, after: After = None
) -> Response:
    """The jobs that a search asks for, the newest first; a whole id leads to its job."""
    now = _now(since)
    try:
        query = search(typed, now, sees=who.may(Right.DOCUMENTS))
    except Invalid as error:
        counts = await _counts(door)
        return _page(request, who, typed, counts=counts, error=error, status=error.http_status)
    if query.job_id is not None:
        return RedirectResponse(url(request, f"{ROOT}/jobs/{query.job_id}"), 303)
    page = door.read(jobs, query.filter, before=None if after is None else Cursor(after), limit=SHOWN)
    found, counts = await asyncio.gather(page, _counts(door))
    if not who.may(Right.DOCUMENTS):
        found = Page(tuple(map(veiled_summary, found.items)), found.next, found.complete)
    return _page(request, who, typed, counts=counts, query=query, found=found)


@routes.get("/jobs.csv", Right.READ)
async def jobs_file(door: AtDoor, who: Caller, typed: Typed = "") -> Response:
    """The newest of the jobs that a search asks for, as a file."""
    sees = who.may(Right.DOCUMENTS)
    rows = await _rows(door, search(typed, datetime.now(UTC), sees=sees))
    return csv_file("jobs", COLUMNS, (_row(job if sees else veiled_summary(job)) for job in rows))


def search(typed: str, now: datetime, *, sees: bool) -> Query:
    """The query that somebody typed. Who may not see what payloads hold may not find out by searching either."""
    query = parse(typed, now=now)
    if query.filter.payload is not None and not sees:
        raise Invalid(
            "Your role does not see what payloads hold, and so cannot search in them.",
            field="payload",
            remedy="Search by kind, queue, state, tag or time.",
        )
    return query


async def _counts(door: Door) -> Mapping[State, Count]:
    """How many jobs there are of each state; nothing where that takes too long, for the list does without."""
    try:
        return await door.read(states)
    except AuthorityUnavailable:
        raise
    except Busy:
        return {}


async def _rows(door: Door, query: Query) -> list[JobSummary]:
    """At most ROWS_MAX jobs, as many as so many looks find."""
    rows: list[JobSummary] = []
    after: Cursor | None = None
    for _ in range(ROWS_MAX // FILE_PAGE):
        page = await door.read(jobs, query.filter, before=after, limit=FILE_PAGE)
        rows += page.items
        after = page.next
        if after is None:
            break
    return rows


def _row(job: JobSummary) -> tuple[object, ...]:
    return tuple(job.error_code if name == "error" else getattr(job, name) for name in COLUMNS)


def _page(
    request: Request,
    who: Caller,
    typed: str,
    *,
    counts: Mapping[State, Count],
    query: Query | None = None,
    found: Page[JobSummary] | None = None,
    error: Invalid | None = None,
    status: int = 200,
) -> Response:
    return render(
        request,
        "jobs.html",
        title="Jobs",
        who=who,
        topics=["jobs"] if query is not None else [],
        status=status,
        typed=typed,
        counts=counts,
        query=query,
        found=found,
        error=error,
        views=VIEWS,
        qualifiers=QUALIFIERS,
        verbs=[(verb, act) for verb, act in ACTS.items() if who.may(act.right)],
        file_rows=ROWS_MAX,
    )


def _now(since: str | None) -> datetime:
    """When the search was first asked: further pages of it count their times from then."""
    now = datetime.now(UTC)
    if since is None:
        return now
    try:
        return min(now, fields.moment(datetime.fromisoformat(since), field="at"))
    except ValueError:
        raise Invalid("That is no time.", field="at", remedy="Search again.") from None
