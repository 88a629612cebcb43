"""What administrators do on the settings page: let users in or not, and end tokens. Each is asked for first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection

from testigo.access.names import spelled
from testigo.access.roles import Right
from testigo.access.tokens import revoke_token
from testigo.access.users import disable_user, enable_user
from testigo.settings import LIMITS
from testigo.web.door import AtDoor, order
from testigo.web.panel.asking import ActionId, Name, Question, Reason, ask, done
from testigo.web.panel.pages import ROOT, url, words
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["CHANGES", "Change", "add_managing"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one user or token: its path, its name in the audit, its words, and its command."""

    path: str
    what: str
    scope: str
    title: str
    effects: tuple[str, ...]
    button: str
    said: str
    command: Callable[..., Any]
    danger: bool = True


CHANGES = (
    Change(
        "/users/disable",
        "users.disable",
        "user",
        "Disable the user {name}?",
        ("Their logins end now, wherever they are, and they cannot log in again.", "They can be enabled again."),
        "Disable",
        "disabled",
        disable_user,
    ),
    Change(
        "/users/enable",
        "users.enable",
        "user",
        "Enable the user {name}?",
        ("They can log in again, with the password and the role that they had.",),
        "Enable",
        "enabled",
        enable_user,
        danger=False,
    ),
    Change(
        "/tokens/revoke",
        "tokens.revoke",
        "token",
        "Revoke the token {name}?",
        ("Whatever sends it is refused from now on.", "It cannot be taken back; a new token can be made."),
        "Revoke",
        "revoked",
        revoke_token,
    ),
)


def add_managing(routes: Routes) -> None:
    """Add the pages that ask, and those that do."""
    for change in CHANGES:
        _add(routes, change)


def _add(routes: Routes, change: Change) -> None:
    settings = f"{ROOT}/settings"

    @routes.get(change.path, Right.MANAGE)
    async def asks(
        request: Request, who: Caller, name: Annotated[str, Query(max_length=LIMITS.name_chars_max)]
    ) -> HTMLResponse:
        """Is it meant?"""
        t = words(request)
        question = Question(
            t(change.title, name=name),
            [t(effect) for effect in change.effects],
            t(change.button),
            settings + change.path,
            url(request, settings),
            {"name": name},
            danger=change.danger,
        )
        return ask(request, who, question)

    @routes.post(change.path, Right.MANAGE)
    async def does(
        request: Request, door: AtDoor, who: Caller, name: Name, action_id: ActionId, reason: Reason = ""
    ) -> Response:
        """Do it."""
        objects = (f"{change.scope}:{spelled(name, field='name')}",)
        asked = order(request, who, Right.MANAGE, change.what, objects, reason, action_id=action_id)

        def command(c: Connection) -> object:
            return change.command(c, name, action=asked.action)

        await door.act(asked, command)
        return done(request, settings, change.said)
