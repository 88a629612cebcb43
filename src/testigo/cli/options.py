"""Options that several commands take, said once."""

from __future__ import annotations

from typing import Annotated

import typer

from testigo.cli import complete
from testigo.rules.states import State

__all__ = ["After", "Client", "JobRef", "Kind", "Limit", "Note", "Queue", "States", "Tag", "Yes"]

JobRef = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]
Queue = Annotated[
    str | None,
    typer.Option("--queue", "-q", metavar="QUEUE", help="Only of this queue.", autocompletion=complete.queues),
]
Kind = Annotated[
    str | None, typer.Option("--kind", "-k", metavar="KIND", help="Only of this kind.", autocompletion=complete.kinds)
]
States = Annotated[
    State | None,
    typer.Option("--state", "-s", metavar="STATE", help="Only in this state: ready, running, permanent_failure …"),
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only with this tag.")]
Client = Annotated[str | None, typer.Option("--client", metavar="NAME", help="Only what this client (App) submitted.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Go on where a page ended.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for people: events and pauses tell it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
