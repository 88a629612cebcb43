"""Pauses, of queues and kinds alike."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Request
from pydantic import Field

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.pause import Scope, pause, resume
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.settings import LIMITS
from testigo.web.api.shapes import Moment, Shape
from testigo.web.door import Door, order

__all__ = ["PauseShape", "Reason", "Switched", "switch"]


class PauseShape(Shape):
    """That no worker takes from it: who paused it, when, and why."""

    actor: str
    note: str
    at: Moment


class Reason(Shape):
    """Why something is done."""

    reason: Annotated[str, Field(max_length=LIMITS.text_bytes_max)] = ""
    """Why, for people: the pause and the audit tell it."""


class Switched(Shape):
    """What a pause or a resume did."""

    scope: Scope
    name: str
    paused: bool
    changed: bool
    """False where it was so already."""


async def switch(
    request: Request,
    door: Door,
    who: Who,
    verb: Literal["pause", "resume"],
    scope: Scope,
    name: str,
    why: Reason,
    key: str | None,
) -> Switched:
    """Pause or resume a queue or kind; `key` names the request."""
    fields.name(name, field="name")
    asked = order(
        request, who, Right.PAUSE, f"{scope}s.{verb}", [f"{scope}:{name}"], discreet(why.reason), action_id=key
    )
    if verb == "pause":
        done = await door.act(asked, lambda c: pause(c, scope, name, note=asked.reason, action=asked.action))
    else:
        done = await door.act(asked, lambda c: resume(c, scope, name, action=asked.action))
    return Switched(scope=done.scope, name=done.name, paused=verb == "pause", changed=done.changed)
