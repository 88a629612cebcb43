"""pause and resume a queue or a kind, and set how a queue's events are kept (spec P-14, P-27).

What is paused is passed over: what runs goes on, and submissions are accepted. No claim that begins
after the pause was answered takes from it; one that began before may.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.pausing import Scope
from testigo.store.sql import Statement

__all__ = ["PauseReceipt", "Scope", "configure_queue", "pause", "resume"]


@dataclass(frozen=True, slots=True)
class PauseReceipt:
    """The receipt of a pause or resume: `changed` is False when it was so already."""

    scope: Scope
    name: str
    changed: bool
    replayed: bool
    wakes: tuple[str, ...] = ()


_PAUSE = Statement(
    """
    INSERT INTO testigo.pause (scope, name, actor, note, at)
    VALUES (:scope, :name, :actor, :note, now())
    ON CONFLICT (scope, name) DO NOTHING
    RETURNING 1
    """
)

_RESUME = Statement("DELETE FROM testigo.pause WHERE scope = :scope AND name = :name RETURNING 1")

_CONFIGURE = Statement(
    """
    INSERT INTO testigo.queue (name, events, stripes)
    VALUES (:name, :events, :stripes)
    ON CONFLICT (name) DO UPDATE SET events = excluded.events, stripes = excluded.stripes
    """
)


def pause(c: Connection, scope: Scope, name: str, *, note: str = "", action: Action) -> PauseReceipt:
    """Have no worker take from this queue, or of this kind, until it is resumed."""
    return _switch(c, "pause", fields.member(scope, Scope, field="scope"), name, note, action)


def resume(c: Connection, scope: Scope, name: str, *, action: Action) -> PauseReceipt:
    """Let workers take from this queue, or of this kind, again."""
    return _switch(c, "resume", fields.member(scope, Scope, field="scope"), name, "", action)


def configure_queue(c: Connection, name: str, *, events: str = "default", stripes: int = 1, action: Action) -> None:
    """Set how a queue's events are kept, for the jobs that are submitted from now on.

    `events` is "default" (requests and outcomes) or "full" (also leased, started, checkpointed,
    released); `stripes` spreads a hot queue over so many streams, each ordered in itself.
    """
    fields.name(name, field="queue")
    if events not in ("default", "full"):
        raise Invalid("A queue keeps its events by default or in full.", field="events", limit="default or full")
    fields.whole(stripes, field="stripes", low=1, high=64)
    digest = digest_of(action, "configure_queue", [name, events, stripes])

    def body() -> object:
        _CONFIGURE.rows(c, name=name, events=events, stripes=stripes)
        return {}

    exactly_once(c, action, digest, body)


def _switch(c: Connection, command: str, scope: Scope, name: str, note: str, action: Action) -> PauseReceipt:
    fields.name(name, field=str(scope))
    digest = digest_of(action, command, [scope, name, note])

    def body() -> object:
        if command == "pause":
            rows = _PAUSE.rows(c, scope=scope, name=name, actor=action.actor, note=discreet(note))
        else:
            rows = _RESUME.rows(c, scope=scope, name=name)
        return bool(rows)

    receipt = exactly_once(c, action, digest, body)
    wakes = (name,) if command == "resume" and scope is Scope.QUEUE else ()
    return PauseReceipt(scope, name, bool(receipt.answer), receipt.replayed, wakes)
