"""The cookies that hold a login's secret, and what a browser is known by that somebody has logged in with.

No script reads them (HttpOnly), no other site's form carries them (SameSite=Lax: with Strict, whoever
follows a link from an alert would look logged out), and where pages come by https they go no other way.
"""

from __future__ import annotations

from fastapi import Request, Response

from testigo.access.secret import Secret, is_secret
from testigo.settings import ACCESS
from testigo.web.security.place import is_secure, url

__all__ = [
    "BROWSER_COOKIE",
    "LOGIN_COOKIE",
    "browser_secret",
    "clear_login",
    "login_secret",
    "set_browser",
    "set_login",
]

LOGIN_COOKIE = "testigo_login"
BROWSER_COOKIE = "testigo_browser"


def login_secret(request: Request) -> str | None:
    """The secret that this request's cookie holds, if it can be one."""
    secret = request.cookies.get(LOGIN_COOKIE)
    return secret if secret is not None and is_secret(secret) else None


def set_login(request: Request, response: Response, secret: str) -> None:
    """Have the browser keep the secret of a login that begins now, for as long as one may go on."""
    response.set_cookie(
        LOGIN_COOKIE,
        secret,
        max_age=int(ACCESS.login_hours * 3_600),  # a span: the database's clock need not be the browser's or ours
        path=url(request, "/"),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def browser_secret(request: Request) -> Secret:
    """What this browser is known by, or a new one: it lets nobody in, and has their tries counted by themselves."""
    kept = request.cookies.get(BROWSER_COOKIE)
    return Secret(kept) if kept is not None and is_secret(kept) else Secret.new()


def set_browser(request: Request, response: Response, secret: Secret) -> None:
    """Have the browser keep what it is known by; logging out does not clear it."""
    response.set_cookie(
        BROWSER_COOKIE,
        secret.text,
        max_age=ACCESS.browser_days * 86_400,
        path=url(request, "/"),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def clear_login(request: Request, response: Response) -> None:
    """Have the browser forget it."""
    response.delete_cookie(
        LOGIN_COOKIE, path=url(request, "/"), secure=is_secure(request), httponly=True, samesite="lax"
    )
