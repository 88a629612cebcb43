"""`testigo queues`: what waits in each queue, and taking from it or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call, complete
from testigo.cli.call import Call, command
from testigo.cli.options import After, Limit, Note
from testigo.cli.pausing import switch
from testigo.cli.written import age, moment
from testigo.errors import NotFound
from testigo.settings import LIMITS

if TYPE_CHECKING:
    from testigo.authority.read import Page, QueueView, SessionView
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("queues", "Look at queues, pause and resume them.")

Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The queue.", autocompletion=complete.queues, show_default=False)
]


@command(group, "list", "queues list", "queues list --json")
def list_(here: Call, limit: Limit = 20, after: After = None) -> None:
    """List the queues by name, with what waits in each.

    Counts stop at 10,000 and then end with a plus sign.
    """
    from testigo.authority.read import Cursor, queues

    with here.database() as db:
        page = db.run(queues, after=None if after is None else Cursor(after), limit=limit)
    here.answer({"queues": page.items, "next": page.next}, lambda: _table(here, page))


@command(group, "show", "queues show media")
def show(here: Call, queue: Name) -> None:
    """Show one queue: what waits, what is paused, and who serves it."""
    with here.database() as db:
        found = _find(db, queue)
        serving = _serving(db, queue)
    answer = {"queue": found, "sessions": [{"id": each.id, "agent": each.agent} for each in serving]}
    here.answer(answer, lambda: _facts(found, serving))


@command(group, "pause", "queues pause media --note 'the disk is full'")
def pause(here: Call, queue: Name, note: Note = "") -> None:
    """Let no worker take from a queue until it is resumed. What runs goes on, and submissions are accepted."""
    switch(here, "pause", "queue", queue, note)


@command(group, "resume", "queues resume media")
def resume(here: Call, queue: Name) -> None:
    """Let workers take from a queue again."""
    switch(here, "resume", "queue", queue, "")


def _find(db: Database, queue: str) -> QueueView:
    from testigo.authority.read import queues

    after = None
    while True:
        page = db.run(queues, after=after, limit=100)
        for each in page.items:
            if each.name == queue:
                return each
        if page.next is None:
            told = f"Nothing is known of a queue {queue!r}."
            raise NotFound(told, field="queue", remedy="See `testigo queues list`; one comes to be by its first job.")
        after = page.next


def _serving(db: Database, queue: str) -> list[SessionView]:
    from testigo.authority.read import SessionState, sessions

    found = db.run(sessions, state=SessionState.OPEN, limit=LIMITS.page_max).items
    return [each for each in found if queue in each.queues]


def _table(here: Call, page: Page[QueueView]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[QueueView]] = [
        Column("queue", lambda queue: queue.name),
        Column("ready", lambda queue: str(queue.ready), whole=True, right=True),
        Column("leased", lambda queue: str(queue.leased), whole=True, right=True),
        Column("delayed", lambda queue: str(queue.delayed), whole=True, right=True),
        Column("next due", lambda queue: age(queue.next_due_at, now), whole=True, right=True),
        Column("workers", lambda queue: str(queue.sessions), whole=True, right=True),
        Column("paused", lambda queue: "paused" if queue.pause else "", whole=True),
        Column("by", lambda queue: queue.pause.actor if queue.pause else "", wide=True),
        Column("why", lambda queue: queue.pause.note if queue.pause else "", wide=True),
    ]
    if page.items:
        print_table(columns, page.items)
    else:
        here.note("No queue is known yet: one comes to be by its first job.")
    if page.next:
        here.note(f"More: --after {page.next}")


def _facts(queue: QueueView, serving: Sequence[SessionView]) -> None:
    from testigo.cli.tables import print_facts

    pause = queue.pause
    print_facts(
        [
            ("queue", queue.name),
            ("ready", str(queue.ready)),
            ("leased", str(queue.leased)),
            ("delayed", str(queue.delayed)),
            ("next due", "" if queue.next_due_at is None else moment(queue.next_due_at)),
            ("events", queue.events),
            ("stripes", str(queue.stripes)),
            ("paused", "" if pause is None else f"since {moment(pause.at)} by {pause.actor}"),
            ("why", "" if pause is None else pause.note),
            ("workers", "\n".join(each.agent for each in serving) or "none"),
        ]
    )
