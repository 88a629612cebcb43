"""Logging in and out: by a name and a password, or by a link that works once."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import unquote, urlsplit

from fastapi import Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from testigo.access import logins, passwords, throttle, users
from testigo.access.roles import Right
from testigo.access.secret import Secret, digest_of
from testigo.errors import TooManyRequests, Unauthenticated
from testigo.web.door import AtDoor, Door
from testigo.web.panel.pages import ROOT, render, url, words
from testigo.web.routes import Open, Routes
from testigo.web.security.cookies import browser_secret, clear_login, login_secret, set_browser, set_login
from testigo.web.security.place import prefix_of

__all__ = ["place_of", "routes"]

routes = Routes("", in_schema=False)

WRONG = "This name and this password do not belong together."

Short = Annotated[str, Form(max_length=2_000)]


@routes.get("/login", Open.LOGIN)
async def form(request: Request, link: Annotated[str, Query(max_length=2_000)] = "") -> HTMLResponse:
    """The form; with `link`, the button that uses that link: to open an address changes nothing."""
    return render(request, "login.html", title="Log in", back="", told="", name="", link=link)


@routes.post("/login", Open.LOGIN)
async def log_in(
    request: Request,
    door: AtDoor,
    name: Short = "",
    password: Short = "",
    link: Short = "",
    back: Short = "",
) -> Response:
    """Log somebody in, and send them where they wanted to go."""
    secret, browser = Secret.new(), browser_secret(request)
    try:
        if link:
            await door.run(logins.use_link, digest_of(link), secret.digest)
        else:
            await _by_password(request, door, name, password, secret, browser)
    except (Unauthenticated, TooManyRequests) as refusal:
        wait = refusal.facts.get("retry_after_seconds")
        told = refusal.message if wait is None else words(request)("Wait {n} second | Wait {n} seconds", n=wait)
        headers = {} if wait is None else {"Retry-After": str(wait)}
        return render(
            request,
            "login.html",
            title="Log in",
            status=refusal.http_status,
            headers=headers,
            back=back,
            told=words(request)(told),
            name=name,
        )
    answer = RedirectResponse(place_of(request, back), status_code=303)
    set_login(request, answer, secret.text)
    if not link:
        set_browser(request, answer, browser)
    return answer


@routes.post("/logout", Right.READ)
async def log_out(request: Request, door: AtDoor) -> Response:
    """End this login, here and on the server."""
    await door.run(logins.log_out, digest_of(login_secret(request) or ""))
    answer = RedirectResponse(url(request, f"{ROOT}/login"), status_code=303)
    clear_login(request, answer)
    return answer


def place_of(request: Request, back: str) -> str:
    """Where to go on: `back` if it is a page of this panel, else its first one."""
    home = prefix_of(request) + ROOT
    try:
        parts = urlsplit(back)
    except ValueError:
        return home
    ours = not parts.scheme and not parts.netloc and (parts.path == home or parts.path.startswith(f"{home}/"))
    climbs = not {".", ".."}.isdisjoint(unquote(parts.path).split("/"))
    return back if ours and not climbs and back.isprintable() and "\\" not in back else home


async def _by_password(request: Request, door: Door, name: str, password: str, secret: Secret, browser: Secret) -> None:
    """Begin the login of whoever knows this name and its password. Raises `Unauthenticated`, alike for both."""
    address = request.client.host if request.client else None
    counted = await door.run(throttle.begin_try, name, address, browser.digest)
    known = await door.run(users.known, name)
    kept = known.password_hash if known else None
    if not await asyncio.to_thread(passwords.verified, kept, password) or known is None or kept is None:
        raise Unauthenticated(WRONG)
    if passwords.is_outdated(kept):
        stronger = await asyncio.to_thread(passwords.hashed, password, name=known.name)
        await door.run(users.replace_hash, known.name, kept, stronger)
    await door.run(logins.log_in, known.name, secret.digest, epoch=known.epoch, counted=counted, browser=browser.digest)
