"""Tokens: what a program sends instead of a password, in `Authorization: Bearer`.

    testigo_0197f3c2a1b4…_8f3c…        testigo_<id, 32 digits>_<secret, 64 digits>

Its text is shown once, to whoever made it; only its digest is kept. Each has a role and an end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.access.names import spelled
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.who import Via, Who
from testigo.authority.actions import Action, new_id
from testigo.authority.read.pages import FROM_NEWEST, Cursor, Listing, Page, an_id, check_limit
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, NotFound, StateConflict
from testigo.rules import fields
from testigo.settings import ACCESS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = [
    "NewToken",
    "TokenReceipt",
    "TokenView",
    "create_token",
    "is_token",
    "revoke_token",
    "tokens",
    "who_has_token",
]

_WRITTEN = re.compile(r"testigo_[0-9a-f]{32}_[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token before it is created: its id, and its whole text, which is the secret."""

    id: str
    secret: Secret

    @classmethod
    def new(cls) -> NewToken:
        """A token that nobody has yet. Make it before the first try to create it: a resend names the same one."""
        made = new_id()
        return cls(made, Secret(f"testigo_{made.replace('-', '')}_{Secret.new().text}"))


@dataclass(frozen=True, slots=True)
class TokenReceipt:
    """The receipt of a token made or revoked: `changed` is False when it was revoked already."""

    id: str
    name: str
    changed: bool
    replayed: bool


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token as a listing shows it. It works until `expires_at`, unless `revoked_at` says that it was ended before."""

    id: str
    name: str
    role: Role
    actor: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    used_at: datetime | None
    works: bool


# The database's clock says how long it may work, whatever the caller's is.
_CREATE = Statement(
    """
    INSERT INTO testigo.token (id, digest, name, role, actor, created_at, expires_at)
    SELECT CAST(:id AS uuid), :digest, :name, :role, :actor, now(), CAST(:expires_at AS timestamptz)
    WHERE CAST(:expires_at AS timestamptz) > now()
      AND CAST(:expires_at AS timestamptz) <= now() + :days * interval '1 day' + interval '1 hour'
    ON CONFLICT (name) DO NOTHING
    RETURNING 1
    """
)

_NAMED = Statement("SELECT CAST(id AS text) AS id FROM testigo.token WHERE name = :name FOR NO KEY UPDATE")

_REVOKE = Statement("UPDATE testigo.token SET revoked_at = now() WHERE name = :name AND revoked_at IS NULL RETURNING 1")

# To say when it was used last is worth no wait: whoever holds the row is passed over.
_WHO = Statement(
    """
    WITH found AS (
        SELECT t.id, t.name, t.role,
               t.used_at IS NULL OR t.used_at < now() - :seconds * interval '1 second' AS stale
        FROM testigo.token t
        WHERE t.digest = :digest AND t.revoked_at IS NULL AND t.expires_at > now()
    ),
    used AS (
        UPDATE testigo.token
        SET used_at = now()
        WHERE id IN (SELECT t.id
                     FROM found JOIN testigo.token t ON t.id = found.id
                     WHERE found.stale
                     FOR NO KEY UPDATE OF t SKIP LOCKED)
    )
    SELECT CAST(id AS text) AS id, name, role FROM found
    """
)

_LIST = Statement(
    """
    SELECT CAST(id AS text) AS id, name, role, actor, created_at, expires_at, revoked_at, used_at,
           revoked_at IS NULL AND expires_at > now() AS works
    FROM testigo.token
    WHERE id < CAST(:before AS uuid)
    ORDER BY id DESC
    LIMIT :limit + 1
    """
)


def create_token(
    c: Connection,
    name: str,
    role: Role,
    expires_at: datetime,
    digest: str,
    *,
    id: str,  # noqa: A002
    action: Action,
) -> TokenReceipt:
    """Make the token `id` of a `NewToken` work, by its secret's digest, with this role, until `expires_at`.

    Raises `Invalid` for an end that is past or more than 366 days away, and `StateConflict` when there is
    a token of that name, revoked or expired ones among them: the audit names tokens by their names.
    """
    fields.must_be_id(id, field="id")
    called = spelled(name, field="name")
    given = fields.member(role, Role, field="role")
    until = fields.moment(expires_at, field="expires_at")
    own = digest_of(action, "create_token", [id, called, given, until])

    def create() -> dict[str, object]:
        values = {"id": id, "digest": digest, "name": called, "role": given, "actor": action.actor}
        if _CREATE.row(c, **values, expires_at=until, days=ACCESS.token_days_max) is None:
            raise _not_created(c, called)
        return {"changed": True}

    receipt = exactly_once(c, action, own, create)
    return TokenReceipt(id, called, receipt.answer["changed"], receipt.replayed)


def revoke_token(c: Connection, name: str, *, action: Action) -> TokenReceipt:
    """Let a token work no more. Raises `NotFound`."""
    called = spelled(name, field="name")

    def revoke() -> dict[str, object]:
        row = _NAMED.row(c, name=called)
        if row is None:
            raise NotFound(f"There is no token {called}.", field="name", remedy="See `testigo token list`.")
        return {"id": row.id, "changed": _REVOKE.row(c, name=called) is not None}

    receipt = exactly_once(c, action, digest_of(action, "revoke_token", [called]), revoke)
    return TokenReceipt(receipt.answer["id"], called, receipt.answer["changed"], receipt.replayed)


def is_token(presented: str) -> bool:
    """Whether this is written as tokens are: what is not need not be looked for."""
    return _WRITTEN.fullmatch(presented) is not None


@single_statement
def who_has_token(c: Connection, digest: str) -> Who | None:
    """Who sends the token with this digest; None for one that is not known, expired or revoked.

    It notes the use, at most once a minute.
    """
    row = _WHO.row(c, digest=digest, seconds=ACCESS.seen_seconds)
    return None if row is None else Who(row.name, Role(row.role), Via.TOKEN, row.id)


@single_statement
def tokens(c: Connection, *, before: Cursor | None = None, limit: int = 100) -> Page[TokenView]:
    """Tokens from the newest, those that work no more among them."""
    check_limit(limit)
    listing = Listing("tokens", (), (an_id,))
    (start,) = listing.position(before, FROM_NEWEST)
    rows = _LIST.rows(c, before=start, limit=limit)
    return listing.page([(_view(row), (row.id,)) for row in rows], limit)


def _not_created(c: Connection, name: str) -> Invalid | StateConflict:
    if _NAMED.row(c, name=name) is not None:
        return StateConflict(
            f"There is, or was, a token {name} already.",
            field="name",
            remedy="Choose another name: the audit tells by it.",
        )
    return Invalid(
        "the token would have ended already, or work too long",
        field="expires_at",
        limit=f"from now to {ACCESS.token_days_max} days from now",
    )


def _view(row: Row[Any]) -> TokenView:
    return TokenView(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        actor=row.actor,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        used_at=row.used_at,
        works=row.works,
    )
