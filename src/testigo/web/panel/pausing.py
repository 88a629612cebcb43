"""Pausing and resuming a queue or a kind: asked first, then done and written down."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse

from testigo.access.roles import Right
from testigo.authority.pause import Scope, pause, resume
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.web.door import AtDoor, order
from testigo.web.panel.asking import ActionId, Name, Question, Reason, ask, done
from testigo.web.panel.pages import ROOT, url, words
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["add_pausing"]

Asked = Annotated[str, Query(max_length=LIMITS.name_chars_max)]


def add_pausing(routes: Routes, scope: Scope) -> None:
    """Add the pages that pause and resume what is of this scope, below its list's path."""
    base = f"{ROOT}/{scope}s"
    shown = f"{base}/show" if scope is Scope.QUEUE else base

    @routes.get("/pause", Right.PAUSE)
    async def ask_pause(request: Request, who: Caller, name: Asked) -> HTMLResponse:
        """Is it meant?"""
        t = words(request)
        fields.name(name, field="name")
        effects = [
            t("No worker takes a job from this queue until it is resumed.")
            if scope is Scope.QUEUE
            else t("No worker takes a job of this kind until it is resumed."),
            t("What runs goes on, and submissions are accepted."),
            t("It can be taken back at any time."),
        ]
        title = (
            t("Pause the queue {name}?", name=name) if scope is Scope.QUEUE else t("Pause the kind {name}?", name=name)
        )
        return ask(
            request,
            who,
            Question(title, effects, t("Pause"), f"{base}/pause", url(request, shown, name=name), {"name": name}),
        )

    @routes.post("/pause", Right.PAUSE)
    async def do_pause(
        request: Request, door: AtDoor, who: Caller, name: Name, action_id: ActionId, reason: Reason = ""
    ) -> Response:
        """Pause it."""
        asked = order(request, who, Right.PAUSE, f"{scope}s.pause", (f"{scope}:{name}",), reason, action_id=action_id)
        await door.act(asked, lambda c: pause(c, scope, name, note=reason, action=asked.action))
        return done(request, shown, "paused", name=name)

    @routes.get("/resume", Right.PAUSE)
    async def ask_resume(request: Request, who: Caller, name: Asked) -> HTMLResponse:
        """Is it meant?"""
        t = words(request)
        fields.name(name, field="name")
        title = (
            t("Resume the queue {name}?", name=name)
            if scope is Scope.QUEUE
            else t("Resume the kind {name}?", name=name)
        )
        effects = [t("Workers take what waits, the most urgent first.")]
        return ask(
            request,
            who,
            Question(title, effects, t("Resume"), f"{base}/resume", url(request, shown, name=name), {"name": name}),
        )

    @routes.post("/resume", Right.PAUSE)
    async def do_resume(
        request: Request, door: AtDoor, who: Caller, name: Name, action_id: ActionId, reason: Reason = ""
    ) -> Response:
        """Resume it."""
        asked = order(request, who, Right.PAUSE, f"{scope}s.resume", (f"{scope}:{name}",), reason, action_id=action_id)
        await door.act(asked, lambda c: resume(c, scope, name, action=asked.action))
        return done(request, shown, "resumed", name=name)
