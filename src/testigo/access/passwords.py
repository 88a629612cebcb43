"""Passwords: what may be one, and its argon2id hash. Nothing here meets the database.

Hashing takes some 50 ms and 64 MiB on purpose, so a server does it outside its event loop and
outside any transaction. For a name that nobody has, the same work is done: how long an answer takes
does not tell whether there is such a user.
"""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING

from testigo.errors import Broken, Invalid
from testigo.settings import ACCESS

if TYPE_CHECKING:
    from argon2 import PasswordHasher

__all__ = ["hashed", "is_outdated", "verified"]

_LIMIT = f"{ACCESS.password_chars_min} to {ACCESS.password_chars_max} characters, not the user's name"


def hashed(password: str, *, name: str) -> str:
    """The hash by which the password of the user `name` is kept.

    Raises `Invalid`, which does not repeat the password, for one that is too short, too long, or the name.
    """
    if not ACCESS.password_chars_min <= len(password) <= ACCESS.password_chars_max:
        raise Invalid(f"the password has {len(password)} characters", field="password", limit=_LIMIT)
    if password.strip().lower() == name.lower():
        raise Invalid("the password is the user's name", field="password", limit=_LIMIT)
    return _hasher().hash(_bytes(password))


def verified(kept: str | None, password: str) -> bool:
    """Whether this is the password that is kept so; False, after the same work, when none is kept."""
    hasher = _hasher()
    from argon2.exceptions import InvalidHashError, VerificationError

    if len(password) > ACCESS.password_chars_max:
        return False
    try:
        hasher.verify(_nobodys() if kept is None else kept, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False
    return kept is not None


def is_outdated(kept: str) -> bool:
    """Whether the hash was made with less work than is asked today, so that it should be made anew."""
    return _hasher().check_needs_rehash(kept)


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError as error:
        raise Broken("Passwords need argon2.", remedy="pip install 'testigo[web]'") from error
    return PasswordHasher()


@cache
def _nobodys() -> str:
    """The hash of a password that nobody has."""
    return _hasher().hash(secrets.token_hex())


def _bytes(password: str) -> bytes:
    return password.encode(errors="surrogatepass")
