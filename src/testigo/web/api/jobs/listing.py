"""Jobs listed, and found by their key."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from testigo.access.roles import Right
from testigo.authority.read import by_key, jobs
from testigo.errors import CursorInvalid, NotFound
from testigo.web.api.conditions import etag
from testigo.web.api.examples import JOB, SUMMARY, page
from testigo.web.api.filters import FilterShape, filter_of
from testigo.web.api.jobs.making import job_shape
from testigo.web.api.jobs.shown import JobShape, JobSummaryShape
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.shapes import PageShape, Shape
from testigo.web.api.told import CHANGES, told
from testigo.web.api.veil import veiled_summary
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/jobs", tags=["jobs"])


class JobsQuery(FilterShape, PageQuery):
    """Which jobs, and which page of them."""


class KeyQuery(Shape):
    """A submission's key, and whose it is."""

    client: str
    """On whose behalf it was submitted."""
    kind: str
    """The job's kind."""
    key: str
    """The submission's key."""


@routes.get("", Right.READ, **told("list_jobs", "List jobs", shows=page(SUMMARY), refuses=(CursorInvalid,)))
async def list_jobs(
    asked: Annotated[JobsQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> PageShape[JobSummaryShape]:
    """List jobs from the newest.

    One page looks at 10,000 jobs at most: where what is asked for is rare, `complete` is false, the page has
    what was found so far, perhaps nothing, and the search goes on at `next`.
    """
    found = await door.read(jobs, filter_of(asked, who), before=asked.cursor, limit=asked.limit)
    shown = found.items if who.may(Right.DOCUMENTS) else tuple(map(veiled_summary, found.items))
    return PageShape(
        items=tuple(map(JobSummaryShape.model_validate, shown)),
        next=next_address(request, found.next),
        complete=found.complete,
    )


@routes.get(
    "/by-key",
    Right.READ,
    **told("find_job", "Find a job by its key", shows=JOB, refuses=(NotFound,), headers=CHANGES),
)
async def find_job(asked: Annotated[KeyQuery, Query()], answer: Response, door: AtDoor, who: Caller) -> JobShape:
    """Show the job that a client's key names now: of one that was retried, the newest."""
    view = await door.read(by_key, asked.client, asked.kind, asked.key)
    answer.headers["ETag"] = etag(view.revision)
    return job_shape(view, who)
