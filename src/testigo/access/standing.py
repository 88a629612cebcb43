"""Whether somebody may still do what goes on in their name: they may be disabled, or be something else, by now."""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.access.roles import RIGHTS, Right, Role
from testigo.access.who import forbidden
from testigo.errors import Unauthenticated
from testigo.store.sql import Statement

__all__ = ["must_still"]

_USER = Statement("SELECT role FROM testigo.user WHERE name = :name AND disabled_at IS NULL FOR SHARE")

_TOKEN = Statement(
    """
    SELECT role
    FROM testigo.token
    WHERE name = :name AND revoked_at IS NULL AND expires_at > now()
    FOR SHARE
    """
)

_BY_SCOPE = {"user": _USER, "token": _TOKEN}


def must_still(c: Connection, actor: str, right: Right) -> None:
    """Refuse what an actor began who has no right to it any more; who has keeps it until the commit.

    A login that has ended ends nothing that its user began. Actors of other scopes than `user` and `token`, such as
    `cli:root`, hold the database's own credentials. Raises `Unauthenticated` and `Forbidden`.
    """
    scope, _, name = actor.partition(":")
    if scope not in _BY_SCOPE:
        return
    row = _BY_SCOPE[scope].row(c, name=name)
    if row is None:
        raise Unauthenticated(f"{actor} was disabled, was revoked or has expired.")
    role = Role(row.role)
    if right not in RIGHTS[role]:
        raise forbidden(role, right)
