"""Operations: one action over many jobs, over a selection that is frozen when it is asked for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response
from pydantic import Field

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import JobId
from testigo.authority.read import EVERY
from testigo.errors import CursorInvalid, NotFound
from testigo.operations import (
    RIGHT_OF,
    Operation,
    OperationId,
    OperationState,
    Outcome,
    Preview,
    Selection,
    Verb,
    begin,
    items,
    operation,
    operations,
    preview,
    stop,
)
from testigo.rules.discreet import discreet
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.web.api import examples
from testigo.web.api.bodies import body, body_if_any
from testigo.web.api.conditions import Key, KeyIfAny
from testigo.web.api.filters import FilterShape, filter_of, filter_shape
from testigo.web.api.jobs.shown import JobSummaryShape
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.pausing import Reason
from testigo.web.api.shapes import CountShape, Id, Moment, PageShape, Shape
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes, must
from testigo.web.security.place import url
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/operations", tags=["operations"])

OperationPath = Annotated[Id, Path(description="The operation's id.")]


class SelectionShape(Shape):
    """The jobs that are meant: those that are named, or all that a filter finds; not both."""

    ids: Annotated[tuple[Id, ...], Field(max_length=LIMITS.batch_max)] = ()
    filter: FilterShape | None = None


class Looking(Shape):
    """What is to be done, and to which jobs."""

    verb: Verb
    selection: SelectionShape


class Beginning(Looking):
    """What is done, to which jobs, and why."""

    reason: Annotated[str, Field(min_length=1, max_length=LIMITS.text_bytes_max)]
    """Why, for people: events and the audit tell it."""


class PreviewShape(Shape):
    """What an operation would be for: how many jobs that qualify now, and the newest of them."""

    count: CountShape
    sample: tuple[JobSummaryShape, ...]
    complete: bool
    """False where there are more jobs than a preview looks at: the operation may be for more than were counted."""


class OperationShape(Shape):
    """An operation as it stands: so many of its `total` jobs are done, were refused, or wait."""

    id: str
    verb: Verb
    filter: FilterShape | None
    """What was asked for, with what the verb adds to it; null where the jobs were named."""
    reason: str
    actor: str
    action: str
    began_at: Moment
    state: OperationState
    total: int
    done: int
    refused: int
    waiting: int
    complete: bool
    """False where more jobs might have been wanted than a selection looks at."""
    ended_at: Moment | None
    stopped_by: str | None
    hindrance: str | None
    """What its last step failed by, which is done again later and later; or, where it was stopped by nobody, why."""


class ItemShape(Shape):
    """One job of an operation, at its place from 1, and what became of it."""

    n: int
    job: str
    revision: int
    """The job's when the selection was frozen."""
    outcome: Outcome
    state: State | None
    """Where it stood then; null of one that was gone, and of one that waits."""
    code: str | None
    """Why it was refused."""
    message: str | None
    successor: str | None
    """The job that a retry made."""
    now: State | None
    """Where that one stands now, or the job itself without one; null of one that is gone."""


class Stopping(Shape):
    """Whether an operation was stopped by this."""

    operation: str
    stopped: bool
    """False where it had ended before."""


class OperationsQuery(PageQuery):
    """Which operations."""

    state: OperationState | None = None
    """In this state."""


class ItemsQuery(PageQuery):
    """Which jobs of an operation."""

    outcome: Outcome | None = None
    """With this outcome."""


@routes.post(
    "/preview",
    Right.READ,
    **told(
        "preview_operation",
        "Preview an operation",
        shows={"count": {"n": 9, "more": False}, "sample": [examples.SUMMARY], "complete": True},
        asks=Looking,
        asks_so={"verb": "retry", "selection": {"filter": {"cause": "0123456789abcdef"}}},
    ),
)
async def preview_operation(
    asked: Annotated[Looking, Depends(body(Looking))], door: AtDoor, who: Caller
) -> PreviewShape:
    """Count the jobs that an operation would be for, and show the newest of them. Nothing is changed."""
    who.must(RIGHT_OF[asked.verb])
    found = await door.read(preview, asked.verb, _selection(asked.selection, who))
    return _preview(found)


@routes.post(
    "",
    Right.READ,
    **told(
        "begin_operation",
        "Begin an operation",
        shows=examples.OPERATION,
        asks=Beginning,
        asks_so={
            "verb": "retry",
            "selection": {"filter": {"error": "HTTPError", "unresolved": True}},
            "reason": "the outage is over",
        },
        refuses=AGAIN,
        status=201,
        also={200: "The operation was begun before, by this request."},
        headers={"Location": {"description": "The operation's address.", "schema": {"type": "string"}}},
    ),
)
async def begin_operation(
    asked: Annotated[Beginning, Depends(body(Beginning))],
    key: Key,
    request: Request,
    answer: Response,
    door: AtDoor,
    who: Caller,
) -> OperationShape:
    """Freeze a selection of jobs, and do something to each of them; the servers do it in the background.

    A job that changed meanwhile and still qualifies is done, any other is refused: each has its outcome. Needs the
    right that the verb needs for one job.
    """
    right = RIGHT_OF[asked.verb]
    await must(request, who, right)
    selection = _selection(asked.selection, who)
    reason = discreet(asked.reason)
    made = order(request, who, right, f"operations.{asked.verb}", [f"key:{key}"], reason, action_id=key)
    done = await door.act(made, lambda c: begin(c, asked.verb, selection, reason=reason, action=made.action))
    answer.headers["Location"] = url(request, f"/api/v1/operations/{done.id}")
    if done.replayed:
        answer.status_code = 200
    return _shape(done, who)


@routes.get(
    "",
    Right.READ,
    **told("list_operations", "List operations", shows=examples.page(examples.OPERATION), refuses=(CursorInvalid,)),
)
async def list_operations(
    asked: Annotated[OperationsQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> PageShape[OperationShape]:
    """List operations from the newest."""
    found = await door.read(operations, state=asked.state, before=asked.cursor, limit=asked.limit)
    return PageShape(
        items=tuple(_shape(each, who) for each in found.items),
        next=next_address(request, found.next),
        complete=found.complete,
    )


@routes.get(
    "/{operation_id}",
    Right.READ,
    **told("get_operation", "Show an operation", shows=examples.OPERATION, refuses=(NotFound,)),
)
async def get_operation(operation_id: OperationPath, door: AtDoor, who: Caller) -> OperationShape:
    """Show how far an operation is."""
    return _shape(await door.read(operation, OperationId(operation_id)), who)


@routes.get(
    "/{operation_id}/items",
    Right.READ,
    **told(
        "list_operation_items",
        "List the jobs of an operation",
        shows=examples.page(examples.ITEM),
        refuses=(NotFound, CursorInvalid),
    ),
)
async def list_operation_items(
    operation_id: OperationPath, asked: Annotated[ItemsQuery, Query()], request: Request, door: AtDoor
) -> PageShape[ItemShape]:
    """List the jobs of an operation in its order, with what became of each."""
    wanted = OperationId(operation_id)
    found = await door.read(items, wanted, outcome=asked.outcome, after=asked.cursor, limit=asked.limit)
    names = [name for name in ItemShape.model_fields if name != "job"]
    shown = (ItemShape(job=item.job_id, **{name: getattr(item, name) for name in names}) for item in found.items)
    return PageShape(items=tuple(shown), next=next_address(request, found.next), complete=found.complete)


@routes.post(
    "/{operation_id}/cancel",
    Right.READ,
    **told(
        "cancel_operation",
        "Stop an operation",
        shows={"operation": examples.OPERATION["id"], "stopped": True},
        asks=Reason,
        asks_so={"reason": "too early"},
        refuses=(NotFound, *AGAIN),
    ),
)
async def cancel_operation(
    operation_id: OperationPath,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Stopping:
    """Leave undone what an operation has not come to; what was done stays done. Needs the right of its verb."""
    wanted = OperationId(operation_id)
    right = RIGHT_OF[(await door.read(operation, wanted)).verb]
    await must(request, who, right)
    what = (right, "operations.stop", [f"operation:{operation_id}"])
    asked = order(request, who, *what, discreet(why.reason).strip() or "stopped", action_id=key)
    done = await door.act(asked, lambda c: stop(c, wanted, action=asked.action))
    return Stopping(operation=done.operation_id, stopped=done.stopped)


def _selection(asked: SelectionShape, who: Who) -> Selection:
    wanted = EVERY if asked.filter is None else filter_of(asked.filter, who)
    return Selection(ids=tuple(map(JobId, asked.ids)), wanted=wanted)


def _shape(found: Operation, who: Who) -> OperationShape:
    members = {name: getattr(found, name) for name in OperationShape.model_fields if name != "filter"}
    wanted = None if found.wanted is None else filter_shape(found.wanted, who)
    return OperationShape(filter=wanted, **members)


def _preview(found: Preview) -> PreviewShape:
    return PreviewShape(
        count=CountShape.model_validate(found.count),
        sample=tuple(map(JobSummaryShape.model_validate, found.sample)),
        complete=found.complete,
    )
