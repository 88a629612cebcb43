"""Queues: what waits in them, and whether workers take from them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from testigo.access.roles import Right
from testigo.authority.pause import Scope
from testigo.authority.read.queues import queue, queues
from testigo.errors import CursorInvalid, NotFound
from testigo.web.api import examples
from testigo.web.api.bodies import body_if_any
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.pausing import PauseShape, Reason, Switched, switch
from testigo.web.api.shapes import CountShape, Moment, PageShape, Shape
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/queues", tags=["queues"])

Name = Annotated[str, Path(description="The queue's name.", examples=["media"])]

_SWITCHED = {"scope": "queue", "name": "media", "paused": True, "changed": True}
_WHY = {"reason": "the disk is full"}


class QueueShape(Shape):
    """A queue as it stands. Counts stop at 10,000."""

    name: str
    ready: CountShape
    """Can be claimed now."""
    delayed: CountShape
    """Waits for its time."""
    leased: CountShape
    """Is owned by somebody."""
    next_due_at: Moment | None
    sessions: CountShape
    """Workers that serve it."""
    events: str
    """How its events are kept: default or full."""
    stripes: int
    pause: PauseShape | None


@routes.get(
    "",
    Right.READ,
    **told("list_queues", "List queues", shows=examples.page(examples.QUEUE), refuses=(CursorInvalid,)),
)
async def list_queues(asked: Annotated[PageQuery, Query()], request: Request, door: AtDoor) -> PageShape[QueueShape]:
    """List every queue that is known by name, with what is in it."""
    found = await door.read(queues, after=asked.cursor, limit=asked.limit)
    return PageShape(items=tuple(map(QueueShape.model_validate, found.items)), next=next_address(request, found.next))


@routes.get("/{name:path}", Right.READ, **told("get_queue", "Show a queue", shows=examples.QUEUE, refuses=(NotFound,)))
async def get_queue(name: Name, door: AtDoor) -> QueueShape:
    """Show one queue: what is in it, what is paused, and how many workers serve it."""
    return QueueShape.model_validate(await door.read(queue, name))


@routes.post(
    "/{name:path}/pause",
    Right.PAUSE,
    **told(
        "pause_queue",
        "Pause a queue",
        shows=_SWITCHED,
        asks=Reason,
        asks_so=_WHY,
        refuses=AGAIN,
    ),
)
async def pause_queue(
    name: Name,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Switched:
    """Let no worker take from a queue until it is resumed. What runs goes on, and submissions are accepted."""
    return await switch(request, door, who, "pause", Scope.QUEUE, name, why, key)


@routes.post(
    "/{name:path}/resume",
    Right.PAUSE,
    **told(
        "resume_queue",
        "Resume a queue",
        shows=_SWITCHED | {"paused": False},
        asks=Reason,
        asks_so={"reason": "there is room again"},
        refuses=AGAIN,
    ),
)
async def resume_queue(
    name: Name,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Switched:
    """Let workers take from a queue again."""
    return await switch(request, door, who, "resume", Scope.QUEUE, name, why, key)
