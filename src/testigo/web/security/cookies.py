"""The cookie that holds a login's secret.

No script reads it (HttpOnly), no other site's form carries it (SameSite=Lax: with Strict, whoever
follows a link from an alert would look logged out), and where pages come by https it goes no other way.
"""

from __future__ import annotations

from fastapi import Request, Response

from testigo.access.secret import is_secret
from testigo.settings import ACCESS
from testigo.web.security.place import is_secure, url

__all__ = ["LOGIN_COOKIE", "clear_login", "login_secret", "set_login"]

LOGIN_COOKIE = "testigo_login"


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


def clear_login(request: Request, response: Response) -> None:
    """Have the browser forget it."""
    response.delete_cookie(
        LOGIN_COOKIE, path=url(request, "/"), secure=is_secure(request), httponly=True, samesite="lax"
    )
