"""Whoever asks may not do this."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "Denied",
    "Forbidden",
    "Unauthenticated",
]


class Denied(
    Error,
    code="DENIED",
    http_status=403,
    exit_status=17,
    remedy="Ask an administrator of this installation.",
):
    """Whoever asks may not do this. Nothing was done."""


class Unauthenticated(
    Denied,
    code="UNAUTHENTICATED",
    http_status=401,
    remedy="Log in, or send a token: `testigo user add` and `testigo token create` make them.",
):
    """It is not known who asks: no login and no token that is valid, or a password that is wrong."""


class Forbidden(
    Denied, code="FORBIDDEN", remedy="Ask an administrator for a role that may do this: `testigo user add --help`."
):
    """Who asks is known, and their role may not do this."""
