"""`testigo workers`: who works here, and letting one finish."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.asking import agree
from testigo.cli.call import Call, command
from testigo.cli.options import After, Limit, Yes
from testigo.cli.written import age
from testigo.errors import NotFound
from testigo.rules.fields import is_id

if TYPE_CHECKING:
    from testigo.authority.read import SessionView
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("workers", "Look at workers, and let them finish.")

LIVE = ("open", "draining")


@command(group, "list", "workers list", "workers list --state dead", "workers list --json")
def list_(
    here: Call,
    state: Annotated[
        str | None,
        typer.Option("--state", "-s", help="open, draining, closed, replaced or dead.", show_default="those that live"),
    ] = None,
    limit: Limit = 100,
    after: After = None,
) -> None:
    """List workers, the newest first: those that live.

    With --state it is those that are over, which are kept for some days. Whether one still beats is told by
    `testigo doctor`, which watches them for a while.
    """
    from testigo.authority.read import Cursor, SessionState, sessions
    from testigo.rules import fields

    before = None if after is None else Cursor(after)
    states = [fields.member(state, SessionState, field="state")] if state else [SessionState(each) for each in LIVE]
    with here.database() as db:
        if len(states) == 1:
            page = db.run(sessions, state=states[0], before=before, limit=limit)
            found, following = page.items, page.next
        else:
            found, following = _live(db)[:limit], None
    here.answer({"workers": found, "next": following}, lambda: _table(here, found))
    if following:
        here.note(f"More: --after {following}")


@command(group, "drain", "workers drain host-1:4711:8f3c2a1b", "workers drain media-1 --yes")
def drain(
    here: Call,
    worker: Annotated[
        str, typer.Argument(metavar="WORKER", help="The agent's name, or the session's id.", show_default=False)
    ],
    yes: Yes = False,
) -> None:
    """Let a worker claim nothing more, finish what it has, and end.

    It is told with its next beat. Its supervisor may start another in its place.
    """
    from testigo.authority.sessions import drain_session

    with here.database() as db:
        session = _find(db, worker)
        held = "1 job" if session.leases.n == 1 else f"{session.leases} jobs"
        agree(f"Drain {session.agent}, which holds {held}?", yes=yes)
        db.run(drain_session, session.id)
    answer = {"session": session.id, "agent": session.agent, "leases": session.leases}
    here.answer(answer, lambda: print(f"{session.agent} is asked to finish: it holds {held}."))


def _live(db: Database) -> tuple[SessionView, ...]:
    from testigo.authority.read import SessionState, sessions
    from testigo.settings import LIMITS

    found = [
        each for state in LIVE for each in db.run(sessions, state=SessionState(state), limit=LIMITS.page_max).items
    ]
    return tuple(sorted(found, key=lambda each: each.id, reverse=True))


def _find(db: Database, worker: str) -> SessionView:
    """The live session of this agent, or with this id."""
    live = _live(db)
    named = [each for each in live if worker in (each.id, each.agent)]
    if not named:
        what = f"session {worker}" if is_id(worker) else f"worker {worker!r}"
        raise NotFound(f"No {what} lives.", field="worker", remedy="See `testigo workers list`.")
    return named[0]


def _table(here: Call, found: Sequence[SessionView]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[SessionView]] = [
        Column("worker", lambda each: each.agent),
        Column("state", lambda each: each.state, whole=True),
        Column("holds", lambda each: str(each.leases), whole=True, right=True),
        Column("age", lambda each: age(each.opened_at, now), whole=True, right=True),
        Column("queues", lambda each: ", ".join(each.queues)),
        Column("kinds", lambda each: ", ".join(each.kinds), wide=True),
        Column("session", lambda each: each.id, whole=True, wide=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("No such worker. One is started by `testigo worker module:app`.")
