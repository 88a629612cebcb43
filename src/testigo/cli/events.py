"""`testigo events`: what happened, in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call, complete
from testigo.cli.call import Call, command
from testigo.cli.options import Limit
from testigo.cli.written import age, in_words, moment, to_json
from testigo.errors import CursorInvalid, CursorTooOld, NotFound

if TYPE_CHECKING:
    from testigo.journal.events import Event
    from testigo.journal.streams import StreamHead
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("events", "Read what happened, in order and without a gap.")


@command(group, "list", "events list", "events list media --after 1200", "events list media --json")
def list_(
    here: Call,
    stream: Annotated[
        str | None,
        typer.Argument(
            metavar="STREAM",
            help="A queue's name, or queue#3 for one of its stripes.",
            autocompletion=complete.queues,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="CURSOR", help="What follows a sequence; of streams, a name."),
    ] = None,
    limit: Limit = 100,
) -> None:
    """List the newest events of a stream, or the streams.

    They are told in order; with --after it is those that follow, and without a stream all streams are listed.

    With --json each event is a CloudEvent on a line of its own.
    """
    from testigo.journal.streams import read, streams

    with here.database() as db:
        if stream is None:
            heads = db.run(streams, after=after or "", limit=limit)
            following = heads[-1].name if len(heads) == limit else None
            here.answer({"streams": heads, "next": following}, lambda: _streams(here, heads, following))
            return
        floor, head = _bounds(db, stream)
        if not head:
            told = f"Nothing was appended to a stream {stream!r} yet."
            raise NotFound(told, field="stream", remedy="See `testigo events list` for the streams that there are.")
        page = db.run(read, stream, after=max(floor, head - limit) if after is None else _sequence(after), limit=limit)
    for event in page.events:
        _print(here, event)
    if page.more:
        here.note(f"More: --after {page.next_after}")


@command(group, "tail", "events tail media", "events tail media --from 1200 --json")
def tail(
    here: Call,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="A queue's name, or queue#3 for one of its stripes.",
            autocompletion=complete.queues,
            show_default=False,
        ),
    ],
    start: Annotated[
        int | None,
        typer.Option("--from", min=0, metavar="SEQUENCE", help="From the event after this one.", show_default="now"),
    ] = None,
) -> None:
    """Follow a stream: every event once, in order, until Ctrl-C.

    To go on later without losing one, begin again with --from and the last sequence that was seen.
    """
    from testigo.journal.tail import tail as followed

    with here.database() as db:
        for event in followed(db, stream, after=_bounds(db, stream)[1] if start is None else start):
            _print(here, event)


def _bounds(db: Database, stream: str) -> tuple[int, int]:
    """The floor and the head of a stream; of one that nothing was appended to yet, 0 and 0."""
    from testigo.journal.streams import read

    try:
        page = db.run(read, stream, limit=1)
    except CursorTooOld as error:
        return error.facts["floor"], error.facts["head"]
    except NotFound:
        return 0, 0
    return page.floor, page.head


def _sequence(after: str) -> int:
    if not after.isascii() or not after.isdigit():
        raise CursorInvalid(f"{after[:40]!r} is no sequence.", field="after", remedy="Use the number of an event.")
    return int(after)


def _streams(here: Call, heads: Sequence[StreamHead], following: str | None) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[StreamHead]] = [
        Column("stream", lambda each: each.name),
        Column("events", lambda each: f"{each.head - each.floor:,}", whole=True, right=True),
        Column("last", lambda each: f"{each.head:,}", whole=True, right=True),
        Column("pruned to", lambda each: f"{each.floor:,}" if each.floor else "", whole=True, right=True),
        Column("age", lambda each: age(each.appended_at, now), whole=True, right=True),
    ]
    if heads:
        print_table(columns, heads)
    else:
        here.note("No stream follows: one comes to be by its queue's first job.")
    if following:
        here.note(f"More: --after {following}")


def _print(here: Call, event: Event) -> None:
    if here.json:
        print(to_json(event.to_cloudevent()), flush=True)
        return
    from rich.text import Text

    from testigo.cli.tables import console, fit

    out = console()
    out.print(
        f"{event.sequence:>6}  {moment(event.time)}  ",
        Text(event.type, style="bold"),
        fit(f"  {event.subject}  {event.actor}  {in_words(event.data)}".rstrip()),
        sep="",
    )
    out.file.flush()
