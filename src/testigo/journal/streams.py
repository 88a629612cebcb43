"""Reading a stream: what comes after a cursor, whole or refused (spec B-03, B-10, P-27; field cases R89, R91).

A cursor is the sequence of the last event that its holder has; 0 is the beginning. What a page
shows and what it says of the stream come from one statement and so from one moment.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.errors import CursorInvalid, CursorTooOld, Invalid, NotFound, StreamBroken
from testigo.journal.events import Event, event_of
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Page", "StreamHead", "check_cursor", "check_stream", "read", "streams"]


class Page(NamedTuple):
    """The events that follow a cursor, without a gap, and where their stream stands.

    `next_after` is the cursor for the next page. Events at or below `floor` were pruned; `head` is
    the last sequence that was given.
    """

    events: tuple[Event, ...]
    floor: int
    head: int
    next_after: int

    @property
    def more(self) -> bool:
        """Whether the stream had more events than this page shows."""
        return self.next_after < self.head


class StreamHead(NamedTuple):
    """A stream and where it stands; it holds the events above `floor` up to `head`."""

    name: str
    floor: int
    head: int
    appended_at: datetime


# The floor, the head and the rows are of one snapshot. A page ends before the event that would make
# it too large; its first is always shown.
_READ = Statement(
    """
    SELECT s.floor, s.head, e.*
    FROM testigo.stream s
         LEFT JOIN LATERAL (
             SELECT p.*, sum(octet_length(data)) OVER (ORDER BY sequence) - octet_length(data) AS bytes_before
             FROM (SELECT *
                   FROM testigo.event
                   WHERE stream = s.name AND sequence > CAST(:after AS bigint)
                   ORDER BY sequence
                   LIMIT :limit) AS p
         ) AS e ON e.bytes_before < :bytes
    WHERE s.name = :stream
    ORDER BY e.sequence
    """
)

_STREAMS = Statement(
    """
    SELECT name, floor, head, appended_at
    FROM testigo.stream
    WHERE name > :after
    ORDER BY name
    LIMIT :limit
    """
)


@single_statement
def read(c: Connection, stream: str, *, after: int = 0, limit: int = 100) -> Page:
    """The events of a stream that follow the cursor `after`: at most `limit`, of at most 1 MiB together.

    Raises `NotFound` for a stream that nothing was appended to, `CursorTooOld` (with the floor) when
    events after the cursor were pruned, and `CursorInvalid` for what is no cursor, or one ahead of
    the stream: an empty page says that there is nothing new, and so is never an answer to either.
    Raises `StreamBroken` rather than show events with a gap between them.
    """
    check_stream(stream)
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
    check_cursor(after)
    rows = _READ.rows(c, stream=stream, after=after, limit=limit, bytes=LIMITS.page_bytes_max)
    if not rows:
        raise NotFound(f"There is no stream {stream!r}.", field="stream")
    floor, head = rows[0].floor, rows[0].head
    if after < floor:
        raise CursorTooOld(
            f"The events of {stream!r} up to {floor} were pruned, and the cursor is {after}.",
            field="after",
            floor=floor,
            head=head,
        )
    if after > head:
        raise _ahead(after, f"the head of {stream!r}, {head}", "after")
    events = tuple(event_of(row) for row in rows if row.sequence is not None)
    _check_whole(stream, after, head, events)
    return Page(events, floor, head, after + len(events))


@single_statement
def streams(c: Connection, *, after: str = "", limit: int = 100) -> tuple[StreamHead, ...]:
    """The streams whose names follow `after`, in the order of their names; fewer than `limit` are the last."""
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
    if after != "":
        check_stream(after, field="after")
    return tuple(_head(row) for row in _STREAMS.rows(c, after=after, limit=limit))


def check_stream(name: object, *, field: str = "stream") -> None:
    """Refuse what cannot be a stream's name: that of a queue, or of one of its stripes (`queue#3`)."""
    queue, mark, stripe = name.partition("#") if isinstance(name, str) else (name, "", "")
    fields.name(queue, field=field)
    if mark and not (stripe.isascii() and stripe.isdigit()):
        raise Invalid("After '#' a stream's name has the number of a stripe.", field=field)


def check_cursor(cursor: object, *, field: str = "after") -> None:
    """Refuse what cannot be a cursor (`CursorInvalid`): a sequence or revision is a whole number, from 0."""
    if isinstance(cursor, bool) or not isinstance(cursor, int) or cursor < 0:
        raise CursorInvalid("A cursor is the number of an event, or 0.", field=field)
    if cursor >= 2**63:
        raise _ahead(cursor, "any stream's head", field)


def _ahead(cursor: int, of: str, field: str) -> CursorInvalid:
    return CursorInvalid(
        f"The cursor {cursor} is ahead of {of}.",
        field=field,
        remedy="The database was restored, or the cursor is another stream's: begin again without a cursor.",
    )


def _check_whole(stream: str, after: int, head: int, events: tuple[Event, ...]) -> None:
    expected = range(after + 1, after + 1 + max(len(events), int(after < head)))
    if [event.sequence for event in events] != list(expected):
        raise StreamBroken(f"The stream {stream!r} has a gap after {after}.", stream=stream, after=after, head=head)


def _head(row: Row[Any]) -> StreamHead:
    return StreamHead(row.name, row.floor, row.head, row.appended_at)
