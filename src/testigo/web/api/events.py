"""Streams of events: listed, read from a cursor, and followed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.errors import CursorInvalid, CursorTooOld, NotFound
from testigo.journal.streams import read, streams
from testigo.store.command import single_statement
from testigo.web.api import examples
from testigo.web.api.cloudevents import CloudEvents, event_shape
from testigo.web.api.paging import LimitField, SequenceQuery, next_address
from testigo.web.api.shapes import Moment, Shape
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.signals.hub import Hub, Quiet
from testigo.web.signals.sending import PING, message, sent
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("", tags=["events"])

_SEQUENCE = r"^[0-9]{1,19}$"


class StreamShape(Shape):
    """A stream and where it stands: it holds the events above `floor` up to `head`."""

    name: str
    floor: int
    head: int
    appended_at: Moment


class Streams(Shape):
    """Streams by name."""

    items: tuple[StreamShape, ...]
    next: str | None


class StreamsQuery(Shape):
    """Which streams."""

    after: str = ""
    """Those whose names follow this."""
    limit: LimitField = 100
    """How many at most."""


class EventsQuery(SequenceQuery):
    """Which events of a stream."""

    stream: str
    """A queue's name, or queue#3 for one of its stripes."""


class LiveQuery(Shape):
    """Which stream is followed, and from where."""

    stream: str
    """A queue's name, or queue#3 for one of its stripes."""
    after: Annotated[int, Field(ge=0)] | None = None
    """From the event after this sequence; without it, from now on. The header Last-Event-ID comes first."""


@routes.get(
    "/streams",
    Right.READ,
    **told("list_streams", "List streams", shows={"items": [examples.STREAM], "next": None}),
)
async def list_streams(asked: Annotated[StreamsQuery, Query()], request: Request, door: AtDoor) -> Streams:
    """List the streams of events by name. A queue's stream comes to be by its first job."""
    found = await door.read(streams, after=asked.after, limit=asked.limit)
    following = found[-1].name if len(found) == asked.limit else None
    items = tuple(map(StreamShape.model_validate, found))
    return Streams(items=items, next=next_address(request, following))


@routes.get(
    "/events",
    Right.READ,
    **told(
        "list_events",
        "List the events of a stream",
        shows={"items": [examples.CLOUDEVENT], "next": None, "redacted": False},
        refuses=(NotFound, CursorInvalid, CursorTooOld),
    ),
)
async def list_events(
    asked: Annotated[EventsQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> CloudEvents:
    """List the events of a stream that follow the sequence `after`, without a gap, at most 1 MiB of them."""
    found = await door.read(read, asked.stream, after=asked.after, limit=asked.limit)
    return CloudEvents(
        items=tuple(event_shape(event, who) for event in found.events),
        next=next_address(request, found.next_after if found.more else None),
        redacted=not who.may(Right.DOCUMENTS),
    )


@routes.get(
    "/events/live",
    Right.READ,
    response_class=StreamingResponse,
    **told(
        "follow_events",
        "Follow a stream of events",
        shows="id: 1205\nevent: job.failed\ndata: {…}\n\n",
        refuses=(NotFound, CursorInvalid, CursorTooOld),
        media="text/event-stream",
    ),
)
async def follow_events(
    asked: Annotated[LiveQuery, Query()],
    request: Request,
    door: AtDoor,
    who: Caller,
    last_event_id: Annotated[
        str | None, Header(pattern=_SEQUENCE, description="The sequence of the last event that was received.")
    ] = None,
) -> Response:
    """Follow a stream: every event once, in order, as server-sent events, until the login or token ends.

    Each has its sequence as id, its type as event and the CloudEvent as data. A comment comes when nothing happened
    for a while, and an event `problem` where the stream breaks off. Whoever was cut off sends the last id as
    Last-Event-ID, as browsers do, and misses nothing.
    """
    given = asked.after if last_event_id is None else int(last_event_id)
    after = await door.read(_start, asked.stream, given)
    hub: Hub = request.app.state.hub
    return await sent(_messages(hub, who, asked.stream, after))


@single_statement
def _start(c: Connection, stream: str, after: int | None) -> int:
    """From where to follow: from a cursor if that is one of the stream, else from its head."""
    if after is not None:
        read(c, stream, after=after, limit=1)
        return after
    try:
        return read(c, stream, limit=1).head
    except CursorTooOld as error:  # the beginning was pruned, and nobody asked for it
        return int(error.facts["head"])


async def _messages(hub: Hub, who: Who, stream: str, after: int) -> AsyncGenerator[str, None]:
    async with aclosing(hub.follow(who, stream, after)) as told:
        async for each in told:
            if isinstance(each, Quiet):
                yield PING
            else:
                shown = event_shape(each, who)
                yield message(each.type, shown.model_dump_json(exclude_none=True), id=str(each.sequence))
