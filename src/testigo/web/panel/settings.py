"""Settings: how the panel looks to whoever looks, their password and logins; for administrators users and tokens."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from testigo.access import passwords, throttle, users
from testigo.access.logins import end_logins, log_in, logins_of
from testigo.access.roles import RIGHTS, Right
from testigo.access.secret import Secret
from testigo.access.tokens import tokens
from testigo.access.who import Via, Who
from testigo.authority.actions import new_id
from testigo.errors import Invalid
from testigo.web.door import AtDoor, Door, order
from testigo.web.panel.asking import ActionId, done
from testigo.web.panel.attempts import attempt
from testigo.web.panel.login import place_of
from testigo.web.panel.looks import COOKIE, THEMES, zones
from testigo.web.panel.managing import add_managing
from testigo.web.panel.pages import ROOT, looks_of, render, url
from testigo.web.panel.words import LANGUAGES
from testigo.web.routes import Routes
from testigo.web.security.cookies import browser_secret, set_browser, set_login
from testigo.web.security.place import is_secure, prefix_of
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/settings", in_schema=False)
add_managing(routes)

_YEAR_SECONDS = 365 * 86_400
_SHOWN = 100

Password = Annotated[str, Form(max_length=2_000)]


@routes.get("", Right.READ)
async def show(request: Request, door: AtDoor, who: Caller) -> HTMLResponse:
    """The page."""
    manages = who.may(Right.MANAGE)
    own, kept, every, given = await asyncio.gather(
        attempt(door, logins_of, who.name) if who.via is not Via.TOKEN else _nothing(),
        attempt(door, users.known, who.name) if who.via is not Via.TOKEN else _nothing(),
        attempt(door, users.users, limit=_SHOWN) if manages else _nothing(),
        attempt(door, tokens, limit=_SHOWN) if manages else _nothing(),
    )
    return render(
        request,
        "settings.html",
        title="Settings",
        who=who,
        themes=THEMES,
        languages=LANGUAGES,
        zones=sorted(zones()),
        rights=sorted(RIGHTS[who.role]),
        logins=own,
        may_change=kept is not None and (kept.password_hash is not None or who.via is Via.LINK),
        users=every,
        tokens=given,
        action_id=new_id(),
        ending_id=new_id(),
        result=request.query_params.get("said"),
    )


@routes.post("/looks", Right.READ)
async def look(request: Request) -> Response:
    """Keep how the panel shall look, in this browser; and go back."""
    form = {name: value for name, value in (await request.form()).items() if isinstance(value, str)}
    looks = looks_of(request).but(form)
    unknown = form.get("times") == "local" and not looks.local
    back = url(request, f"{ROOT}/settings") + "#times" if unknown else place_of(request, form.get("back", ""))
    answer = RedirectResponse(back, status_code=303)
    answer.set_cookie(
        COOKIE,
        looks.cookie,
        max_age=_YEAR_SECONDS,
        path=prefix_of(request) or "/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return answer


@routes.post("/password", Right.READ)
async def change_password(
    request: Request,
    door: AtDoor,
    who: Caller,
    action_id: ActionId,
    new: Password,
    again: Password,
    old: Password = "",
) -> Response:
    """Change one's own password. Every other login ends, and this one goes on."""
    if new != again:
        raise Invalid("The two new passwords differ.", field="again", remedy="Type the same one twice.")
    await _check(door, who, old)
    kept = await asyncio.to_thread(passwords.hashed, new, name=who.name)
    asked = order(request, who, Right.READ, "users.password", (f"user:{who.name}",), "", action_id=action_id)
    receipt = await door.act(asked, lambda c: users.set_password_hash(c, who.name, kept, action=asked.action))
    secret, browser = Secret.new(), browser_secret(request)
    await door.run(log_in, who.name, secret.digest, epoch=receipt.epoch, browser=browser.digest)
    answer = done(request, f"{ROOT}/settings", "password")
    set_login(request, answer, secret.text)
    set_browser(request, answer, browser)
    return answer


@routes.post("/logins/end", Right.READ)
async def end_others(request: Request, door: AtDoor, who: Caller, action_id: ActionId) -> Response:
    """End one's other logins, wherever they are."""
    if who.via is not Via.TOKEN:
        asked = order(request, who, Right.READ, "users.end_logins", (f"user:{who.name}",), "", action_id=action_id)
        await door.act(asked, lambda c: end_logins(c, who.name, but=who.credential))
    return done(request, f"{ROOT}/settings", "ended")


async def _check(door: Door, who: Who, old: str) -> None:
    """Whoever changes a password knows the one that holds, or came by a link. Raises `Invalid`, `TooManyRequests`.

    Whom an issuer lets in makes none here: they would keep it, and their role, when they are nobody there any more.
    """
    if who.via is Via.TOKEN:
        raise Invalid("A token has no password.", field="old", remedy="Log in as a user.")
    known = await door.run(users.known, who.name)
    if known is None or (known.password_hash is None and who.via is Via.LINK):
        return
    if known.password_hash is None:
        raise Invalid(
            "You have no password here: another login page lets you in.",
            field="old",
            remedy="Change it there. Or have one given to you, with `testigo user password NAME`.",
        )
    counted = await door.run(throttle.begin_own_try, who.credential)
    if not await asyncio.to_thread(passwords.verified, known.password_hash, old):
        raise Invalid("That is not the password that holds now.", field="old", remedy="Go back and type it again.")
    await door.run(throttle.forgive, counted)


async def _nothing() -> None:
    """What is not asked for."""
