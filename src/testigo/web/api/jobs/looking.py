"""One job: how it stands, what it holds, and what it went through."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field

from testigo.access.roles import Right
from testigo.authority.actions import JobId
from testigo.authority.explain import explain
from testigo.authority.read import LogPlace, job, late_results, lineage, log, tombstones
from testigo.errors import CursorInvalid, NotFound
from testigo.journal.history import history, runs
from testigo.web.api import examples
from testigo.web.api.cloudevents import CloudEvents, event_shape
from testigo.web.api.conditions import etag
from testigo.web.api.jobs.making import explanation_shape, job_shape, late_shape, related_shape, run_shape
from testigo.web.api.jobs.shown import (
    ExplanationShape,
    JobShape,
    LateResultShape,
    LineageShape,
    LogLineShape,
    LogShape,
    RunsShape,
    TombstoneShape,
)
from testigo.web.api.paging import LimitField, PageQuery, SequenceQuery, next_address
from testigo.web.api.shapes import Id, PageShape, Shape
from testigo.web.api.told import CHANGES, told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["JobPath", "routes"]

routes = Routes("/jobs", tags=["jobs"])

JobPath = Annotated[Id, Path(description="The job's id.")]


class LateQuery(PageQuery):
    """Which late results."""

    documents: bool = False
    """Also the outputs and checkpoints that were reported."""


class LimitQuery(Shape):
    """How many of each kind."""

    limit: LimitField = 100
    """How many at most."""


class LogQuery(Shape):
    """Which lines of a log."""

    after: Annotated[str, Field(pattern=r"^[0-9]{1,10}\.[0-9]{1,19}$")] = "0.0"
    """What follows this line, by its run and its number: 2.17."""
    limit: LimitField = 100
    """How many at most."""


@routes.get(
    "/{job_id}", Right.READ, **told("get_job", "Show a job", shows=examples.JOB, refuses=(NotFound,), headers=CHANGES)
)
async def get_job(job_id: JobPath, answer: Response, door: AtDoor, who: Caller) -> JobShape:
    """Show a job as it stands. Its revision, which every change raises, is the ETag."""
    view = await door.read(job, JobId(job_id))
    answer.headers["ETag"] = etag(view.revision)
    return job_shape(view, who)


@routes.get(
    "/{job_id}/explain",
    Right.READ,
    **told("explain_job", "Explain why a job does not run", shows=examples.EXPLANATION, refuses=(NotFound,)),
)
async def explain_job(job_id: JobPath, door: AtDoor, who: Caller) -> ExplanationShape:
    """Say why a job does not run, and when it will; or that it runs, or how it ended."""
    return explanation_shape(await door.read(explain, JobId(job_id)), who)


@routes.get(
    "/{job_id}/events",
    Right.READ,
    **told(
        "list_job_events",
        "List a job's events",
        shows={"items": [examples.CLOUDEVENT], "next": None, "redacted": False},
        refuses=(NotFound, CursorInvalid),
    ),
)
async def list_job_events(
    job_id: JobPath, asked: Annotated[SequenceQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> CloudEvents:
    """List what a job went through, in order: what follows the revision `after`, at most 1 MiB of it."""
    found = await door.read(history, JobId(job_id), after=asked.after, limit=asked.limit)
    return CloudEvents(
        items=tuple(event_shape(event, who) for event in found.events),
        next=next_address(request, found.next_after),
        redacted=not who.may(Right.DOCUMENTS),
    )


@routes.get(
    "/{job_id}/runs",
    Right.READ,
    **told(
        "list_runs",
        "List a job's runs",
        shows={"items": [examples.RUN], "next": None, "redacted": False},
        refuses=(NotFound, CursorInvalid),
    ),
)
async def list_runs(
    job_id: JobPath, asked: Annotated[SequenceQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> RunsShape:
    """List the runs of a job whose epochs follow `after`, as far as its events tell of them."""
    found = await door.read(runs, JobId(job_id), after=asked.after, limit=asked.limit)
    return RunsShape(
        items=tuple(run_shape(run, who) for run in found),
        next=next_address(request, found[-1].epoch if len(found) == asked.limit else None),
        redacted=not who.may(Right.DOCUMENTS),
    )


@routes.get(
    "/{job_id}/log",
    Right.DOCUMENTS,
    **told("read_log", "Read a job's log", shows=examples.LOG, refuses=(NotFound,)),
)
async def read_log(job_id: JobPath, asked: Annotated[LogQuery, Query()], request: Request, door: AtDoor) -> LogShape:
    """Read what the runs of a job logged, in their order. A job without any has an empty log."""
    epoch, n = map(int, asked.after.split("."))
    found = await door.read(log, JobId(job_id), after=LogPlace(epoch, n), limit=asked.limit)
    after = f"{found.place.epoch}.{found.place.n}"
    lines = (
        LogLineShape(epoch=line.place.epoch, n=line.place.n, at=line.at, level=line.level, text=line.text)
        for line in found.lines
    )
    following = next_address(request, after) if found.more else None
    return LogShape(items=tuple(lines), next=following, after=after, dropped=found.dropped)


@routes.get(
    "/{job_id}/late-results",
    Right.READ,
    **told(
        "list_late_results",
        "List a job's late results",
        shows=examples.page(examples.LATE),
        refuses=(CursorInvalid,),
    ),
)
async def list_late_results(
    job_id: JobPath, asked: Annotated[LateQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> PageShape[LateResultShape]:
    """List what was reported without a lease, in the order of its coming: evidence that changed nothing."""
    documents = asked.documents and who.may(Right.DOCUMENTS)
    found = await door.read(late_results, JobId(job_id), documents=documents, after=asked.cursor, limit=asked.limit)
    items = tuple(late_shape(late, who) for late in found.items)
    return PageShape(items=items, next=next_address(request, found.next))


@routes.get(
    "/{job_id}/tombstones",
    Right.READ,
    **told(
        "list_tombstones",
        "List a job's tombstones",
        shows=examples.page(examples.TOMBSTONE),
        refuses=(CursorInvalid,),
    ),
)
async def list_tombstones(
    job_id: JobPath, asked: Annotated[PageQuery, Query()], request: Request, door: AtDoor
) -> PageShape[TombstoneShape]:
    """List what was taken out of a job, and whether it was deleted: by whom, and why."""
    found = await door.read(tombstones, JobId(job_id), after=asked.cursor, limit=asked.limit)
    names = [name for name in TombstoneShape.model_fields if name != "job"]
    items = tuple(
        TombstoneShape(job=each.job_id, **{name: getattr(each, name) for name in names}) for each in found.items
    )
    return PageShape(items=items, next=next_address(request, found.next))


@routes.get(
    "/{job_id}/lineage",
    Right.READ,
    **told("get_lineage", "Show a job's relations", shows=examples.LINEAGE, refuses=(NotFound,)),
)
async def get_lineage(job_id: JobPath, asked: Annotated[LimitQuery, Query()], door: AtDoor) -> LineageShape:
    """Show what a job superseded and was superseded by, and which jobs it waits for and is waited for by."""
    found = await door.read(lineage, JobId(job_id), limit=asked.limit)
    return LineageShape(
        job=found.job_id,
        superseded=tuple(map(related_shape, found.superseded)),
        successors=tuple(map(related_shape, found.successors)),
        parents=tuple(map(related_shape, found.parents)),
        children=tuple(map(related_shape, found.children)),
        more=tuple(sorted(found.more)),
    )
