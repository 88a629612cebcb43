"""Streams and their events: where each stands, what it told last, and one event whole (panel.md *Events*)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from fastapi import Query as Asked
from fastapi import Request, Response
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.errors import CursorTooOld, NotFound
from testigo.journal.catalogue import CATALOGUE
from testigo.journal.events import Event
from testigo.journal.streams import StreamHead, read, streams
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.web.api.veil import veiled_event
from testigo.web.door import AtDoor
from testigo.web.panel.pages import render
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/events", in_schema=False)

STREAMS_SHOWN = 100
SHOWN = 50
LOOKED_AT = LIMITS.page_max
"""Events that one page looks at for those of a type."""

Stream = Annotated[str | None, Asked(alias="stream", max_length=LIMITS.name_chars_max + 10)]
UpTo = Annotated[int | None, Asked(alias="upto", ge=0, le=fields.BIGINT_MAX)]
Type = Annotated[str, Asked(alias="type", max_length=LIMITS.name_chars_max)]


class Told(NamedTuple):
    """The newest events of a stream up to a place, the newest first, and from where to go on; None at its floor."""

    events: tuple[Event, ...]
    older: int | None


@routes.get("", Right.READ)
async def events_page(
    request: Request,
    door: AtDoor,
    who: Caller,
    stream: Stream = None,
    upto: UpTo = None,
    kind: Type = "",
    after: str = "",
) -> Response:
    """The streams; and the events of one of them, at first of the one that was appended to last."""
    heads = await door.read(streams, after=after, limit=STREAMS_SHOWN + 1)
    chosen = stream or _liveliest(heads)
    told = await door.read(_newest, chosen, upto, kind) if chosen else Told((), None)
    events = told.events if who.may(Right.DOCUMENTS) else tuple(map(veiled_event, told.events))
    return render(
        request,
        "events.html",
        title="Events",
        who=who,
        topics=["jobs"] if upto is None else [],
        heads=heads[:STREAMS_SHOWN],
        streams_after=heads[STREAMS_SHOWN - 1].name if len(heads) > STREAMS_SHOWN else None,
        stream=chosen,
        events=events,
        older=told.older,
        upto=upto,
        type=kind,
        types=list(CATALOGUE),
        words=_words,
    )


@routes.get("/one", Right.READ)
async def event_page(
    request: Request,
    door: AtDoor,
    who: Caller,
    stream: Annotated[str, Asked(max_length=LIMITS.name_chars_max + 10)],
    sequence: Annotated[int, Asked(ge=1, le=fields.BIGINT_MAX)],
) -> Response:
    """One event, as whoever follows its stream is sent it."""
    page = await door.read(read, stream, after=sequence - 1, limit=1)
    if not page.events:
        raise NotFound(f"The stream has no event {sequence} yet.", field="sequence")
    event = page.events[0] if who.may(Right.DOCUMENTS) else veiled_event(page.events[0])
    return render(
        request,
        "event.html",
        title=event.type,
        who=who,
        event=event,
        is_first=sequence - 1 <= page.floor,
        is_last=sequence >= page.head,
        whole=json.dumps(event.to_cloudevent(), ensure_ascii=False, indent=2),
    )


def _liveliest(heads: Sequence[StreamHead]) -> str:
    """The stream that was appended to last; empty where there is none."""
    return max(heads, key=lambda head: head.appended_at).name if heads else ""


def _newest(c: Connection, stream: str, upto: int | None, kind: str) -> Told:
    head, floor = _where(c, stream)
    end = head if upto is None else min(upto, head)
    start = max(floor, end - (LOOKED_AT if kind else SHOWN))
    if end <= floor:
        return Told((), None)
    found: list[Event] = []
    at = start
    while at < end:
        page = read(c, stream, after=at, limit=min(LOOKED_AT, end - at))
        found += page.events
        at = page.next_after
    wanted = [event for event in reversed(found) if not kind or event.type == kind]
    shown = wanted[:SHOWN]
    if len(wanted) > SHOWN:
        return Told(tuple(shown), shown[-1].sequence - 1)
    return Told(tuple(shown), start if start > floor else None)


def _where(c: Connection, stream: str) -> tuple[int, int]:
    """Head and floor of a stream: its first page tells them, or refuses by them."""
    try:
        page = read(c, stream, limit=1)
    except CursorTooOld as error:
        return error.facts["head"], error.facts["floor"]
    return page.head, page.floor


def _words(event: Event) -> str:
    """What an event tells, on one line: without the state, which its type says, and without what is nested."""
    told = {name: value for name, value in event.data.items() if name != "state" and not isinstance(value, dict)}
    return ", ".join(f"{name}={value}" for name, value in told.items() if value is not None)
