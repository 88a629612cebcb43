"""Who asks: found once per request, by the guard of its route, before anything of the request is read.

A token is sent as `Authorization: Bearer …`, a login as a cookie. Whoever sends a token is known by it
alone: one that is not valid is refused, and no cookie is looked at in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection

from testigo.access.logins import who_logged_in
from testigo.access.roles import Right
from testigo.access.secret import digest_of
from testigo.access.tokens import is_token, who_has_token
from testigo.access.who import Who
from testigo.errors import Unauthenticated
from testigo.web.door import door_of
from testigo.web.security.cookies import login_secret

__all__ = ["Caller", "allowed", "find_caller", "who"]


def who(request: Request) -> Who:
    """Whoever sent this request, as its route's guard has found them. Raises `Unauthenticated` where none did."""
    found: Who | None = getattr(request.state, "who", None)
    if found is None:
        raise Unauthenticated("This needs a login or a token.")
    return found


Caller = Annotated[Who, Depends(who)]
"""The parameter of a handler that wants to know who asks."""


def allowed(right: Right) -> Callable[[Request], Who]:
    """A dependency for a further right than that of the route. Raises `Forbidden`, naming it."""

    def needed(request: Request) -> Who:
        found = who(request)
        found.must(right)
        return found

    return needed


async def find_caller(request: Request) -> Who:
    """Look who sends this request.

    Raises `Unauthenticated` for no login and no token that is valid, and `TooManyRequests` for too many such ones.
    """
    authorization = request.headers.get("authorization")
    if authorization is not None:
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        found = await _look(request, who_has_token, token) if is_token(token) else None
        if found is None:
            raise Unauthenticated("The token is not known, has expired or was revoked.")
        return found
    secret = login_secret(request)
    found = await _look(request, who_logged_in, secret) if secret else None
    if found is None:
        raise Unauthenticated("You are not logged in, or your login has ended.")
    return found


async def _look(request: Request, command: Callable[[Connection, str], Who | None], secret: str) -> Who | None:
    """Whose secret this is: one query, unless strangers have asked for too many from there."""
    digest, strangers = digest_of(secret), request.app.state.strangers
    strangers.admit(digest, request.client.host if request.client else None)
    found = await door_of(request).identify(command, digest)
    if found is None:
        strangers.forget(digest)
    else:
        strangers.meet(digest)
    return found
