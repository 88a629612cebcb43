"""`testigo kinds`: which kinds of jobs there are, who runs them, and taking of them or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call, complete
from testigo.cli.call import Call, command
from testigo.cli.options import Note
from testigo.cli.pausing import switch

if TYPE_CHECKING:
    from testigo.authority.read.kinds import KindView

__all__ = ["group"]

group = call.group("kinds", "Look at kinds of jobs, pause and resume them.")

Name = Annotated[
    str, typer.Argument(metavar="KIND", help="The kind.", autocompletion=complete.kinds, show_default=False)
]


@command(group, "list", "kinds list", "kinds list --json")
def list_(here: Call) -> None:
    """List the kinds of jobs, with who runs them.

    They are known from workers, pauses and the newest 10,000 jobs, of which the counts are.
    """
    from testigo.authority.read.kinds import kinds

    with here.database() as db:
        found = db.run(kinds)
    here.answer({"kinds": found}, lambda: _table(here, found))


@command(group, "pause", "kinds pause media.transcode --note 'a broken codec'")
def pause(here: Call, kind: Name, note: Note = "") -> None:
    """Let no worker take jobs of a kind until it is resumed. What runs goes on, and submissions are accepted."""
    switch(here, "pause", "kind", kind, note)


@command(group, "resume", "kinds resume media.transcode")
def resume(here: Call, kind: Name) -> None:
    """Let workers take jobs of a kind again."""
    switch(here, "resume", "kind", kind, "")


def _table(here: Call, found: tuple[KindView, ...]) -> None:
    from testigo.cli.tables import Column, print_table

    columns: list[Column[KindView]] = [
        Column("kind", lambda kind: kind.name),
        Column("waiting", lambda kind: f"{kind.waiting:,}", whole=True, right=True),
        Column("leased", lambda kind: f"{kind.leased:,}", whole=True, right=True),
        Column("failed", lambda kind: f"{kind.failed:,}", whole=True, right=True),
        Column("workers", lambda kind: f"{kind.sessions:,}", whole=True, right=True),
        Column("paused", lambda kind: "paused" if kind.pause else "", whole=True),
        Column("by", lambda kind: kind.pause.actor if kind.pause else "", wide=True),
        Column("why", lambda kind: kind.pause.note if kind.pause else "", wide=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("No kind is known yet: no worker runs, and no job was submitted.")
