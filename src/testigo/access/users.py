"""Users: who may log in, and as what.

Each change of a password or role, and disabling, raises the user's epoch: every login and open stream
of an older epoch ends at its next look. Who may call these is for `act` to decide. Whoever asks, an
administrator remains: the last one who can log in by themselves is neither disabled nor given another role.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.access.names import spelled
from testigo.access.roles import Role
from testigo.authority.actions import Action
from testigo.authority.read.pages import Cursor, Listing, Page, a_name, check_limit
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, NotFound, StateConflict
from testigo.rules import fields
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = [
    "Known",
    "UserReceipt",
    "UserView",
    "add_user",
    "disable_user",
    "enable_user",
    "known",
    "replace_hash",
    "set_password_hash",
    "set_role",
    "users",
]


@dataclass(frozen=True, slots=True)
class UserReceipt:
    """The receipt of a change of one user: `changed` is False when it was so already."""

    name: str
    epoch: int
    changed: bool
    replayed: bool


@dataclass(frozen=True, slots=True)
class UserView:
    """A user as a listing shows them. One without a password logs in by a link, or by OIDC."""

    name: str
    role: Role
    epoch: int
    has_password: bool
    created_at: datetime
    changed_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class Known:
    """What is needed to log a user in: the hash of their password, if there is one, and their epoch."""

    name: str
    role: Role
    epoch: int
    password_hash: str | None

    def __repr__(self) -> str:
        return f"Known(name={self.name!r}, epoch={self.epoch})"


_ADD = Statement(
    """
    INSERT INTO testigo.user (name, role, password_hash, created_at, changed_at)
    VALUES (:name, :role, :password_hash, now(), now())
    ON CONFLICT (name) DO NOTHING
    RETURNING epoch
    """
)

# All administrators are held, so that of two who take each other's place away one finds the other gone. As in `act`,
# by their names: nobody waits in a circle. Without a password, whom an issuer has let in lately can log in; whoever
# waits for a link that somebody makes them, as `local` does, cannot by themselves.
_LOCK = Statement(
    """
    SELECT u.name, u.role, u.epoch, u.disabled_at IS NOT NULL AS disabled,
           u.password_hash IS NOT NULL
               OR EXISTS (SELECT FROM testigo.login l WHERE l.name = u.name AND l.via = 'login') AS can_log_in
    FROM testigo.user u
    WHERE u.name = :name OR (:administrators AND u.role = 'admin')
    ORDER BY u.name
    FOR NO KEY UPDATE OF u
    """
)

_SET_ROLE = Statement(
    """
    UPDATE testigo.user
    SET role = :role, epoch = epoch + 1, changed_at = now()
    WHERE name = :name
    RETURNING epoch
    """
)

_SET_PASSWORD = Statement(
    """
    UPDATE testigo.user
    SET password_hash = :password_hash, epoch = epoch + 1, changed_at = now()
    WHERE name = :name
    RETURNING epoch
    """
)

_DISABLE = Statement(
    """
    WITH revoked AS (
        UPDATE testigo.token SET revoked_at = now() WHERE actor = 'user:' || :name AND revoked_at IS NULL
    )
    UPDATE testigo.user
    SET disabled_at = now(), epoch = epoch + 1, changed_at = now()
    WHERE name = :name
    RETURNING epoch
    """
)

_ENABLE = Statement(
    """
    UPDATE testigo.user
    SET disabled_at = NULL, epoch = epoch + 1, changed_at = now()
    WHERE name = :name
    RETURNING epoch
    """
)

_KNOWN = Statement(
    """
    SELECT name, role, epoch, password_hash
    FROM testigo.user
    WHERE name = :name AND disabled_at IS NULL
    """
)

_REPLACE_HASH = Statement(
    """
    UPDATE testigo.user
    SET password_hash = :new
    WHERE name = :name AND password_hash = :old
    """
)

_LIST = Statement(
    """
    SELECT name, role, epoch, password_hash IS NOT NULL AS has_password, created_at, changed_at, disabled_at
    FROM testigo.user
    WHERE name > :after
    ORDER BY name
    LIMIT :limit + 1
    """
)


def add_user(c: Connection, name: str, role: Role, password_hash: str | None = None, *, action: Action) -> UserReceipt:
    """Let somebody log in as `name`, with this role and, if a hash is given, this password.

    Raises `StateConflict` when there is such a user, disabled or not.
    """
    who = spelled(name, field="name")
    given = fields.member(role, Role, field="role")
    digest = digest_of(action, "add_user", [who, given])

    def add() -> dict[str, object]:
        row = _ADD.row(c, name=who, role=given, password_hash=password_hash)
        if row is None:
            raise StateConflict(
                f"There is a user {who} already.",
                field="name",
                remedy="Choose another name; or change that user's role or password, or enable them.",
            )
        return {"epoch": row.epoch, "changed": True}

    receipt = exactly_once(c, action, digest, add)
    return UserReceipt(who, **receipt.answer, replayed=receipt.replayed)


def set_role(c: Connection, name: str, role: Role, *, issuer_says: bool = False, action: Action) -> UserReceipt:
    """Give a user another role; their logins end.

    Raises `NotFound`, and `StateConflict` where no administrator would remain: unless an issuer of logins says so,
    for whom it is to make another one.
    """
    given = fields.member(role, Role, field="role")
    ends = given is not Role.ADMIN and not issuer_says
    return _change(
        c, "set_role", name, _SET_ROLE, {"role": given}, lambda row: row.role != given, action, ends_administrator=ends
    )


def set_password_hash(c: Connection, name: str, password_hash: str, *, action: Action) -> UserReceipt:
    """Give a user another password, by its hash; their logins end. Raises `NotFound`."""
    return _change(c, "set_password", name, _SET_PASSWORD, {"password_hash": password_hash}, lambda _: True, action)


def disable_user(c: Connection, name: str, *, action: Action) -> UserReceipt:
    """Let a user log in no more; their logins end, and the tokens that they made. What they did stays told.

    Raises `NotFound`, and `StateConflict` where no administrator would remain.
    """
    return _change(c, "disable_user", name, _DISABLE, {}, lambda row: not row.disabled, action, ends_administrator=True)


def enable_user(c: Connection, name: str, *, action: Action) -> UserReceipt:
    """Let a user log in again, with the password and role that they had. Raises `NotFound`."""
    return _change(c, "enable_user", name, _ENABLE, {}, lambda row: row.disabled, action)


@single_statement
def known(c: Connection, name: str) -> Known | None:
    """The user who may log in under this name, whatever text that is; None for one that is disabled, or nobody's."""
    try:
        wanted = spelled(name, field="name")
    except Invalid:
        return None
    row = _KNOWN.row(c, name=wanted)
    return None if row is None else Known(row.name, Role(row.role), row.epoch, row.password_hash)


@single_statement
def replace_hash(c: Connection, name: str, old: str, new: str) -> None:
    """Keep the same password by a stronger hash: nothing ends. Nothing is done if `old` is not what is kept."""
    _REPLACE_HASH.rows(c, name=name, old=old, new=new)


@single_statement
def users(c: Connection, *, after: Cursor | None = None, limit: int = 100) -> Page[UserView]:
    """Users by their names."""
    check_limit(limit)
    listing = Listing("users", (), (a_name,))
    (start,) = listing.position(after, ("",))
    rows = _LIST.rows(c, after=start, limit=limit)
    return listing.page([(_view(row), (row.name,)) for row in rows], limit)


def _change(
    c: Connection,
    command: str,
    name: str,
    statement: Statement,
    values: dict[str, Any],
    differs: Any,
    action: Action,
    *,
    ends_administrator: bool = False,
) -> UserReceipt:
    """Make a change of one user, unless it is so already. Hashes and passwords are in no receipt's digest."""
    who = spelled(name, field="name")
    told = [str(value) for key, value in values.items() if key != "password_hash"]
    digest = digest_of(action, command, [who, *told])

    def change() -> dict[str, object]:
        held = {row.name: row for row in _LOCK.rows(c, name=who, administrators=ends_administrator)}
        row = held.pop(who, None)
        if row is None:
            raise NotFound(f"There is no user {who}.", field="name", remedy="See `testigo user list`.")
        if not differs(row):
            return {"epoch": row.epoch, "changed": False}
        remain = any(_administers(each) and each.can_log_in for each in held.values())
        if ends_administrator and _administers(row) and not remain:
            raise StateConflict(
                f"{who} is the last administrator who can log in: nobody could manage users any more.",
                field="name",
                limit="1 administrator with a password, or whom an issuer of logins lets in",
                remedy="Make somebody else an administrator first, who has a password: `testigo user role NAME admin`.",
            )
        (changed,) = statement.rows(c, name=who, **values)
        return {"epoch": changed.epoch, "changed": True}

    receipt = exactly_once(c, action, digest, change)
    return UserReceipt(who, **receipt.answer, replayed=receipt.replayed)


def _administers(row: Row[Any]) -> bool:
    return row.role == Role.ADMIN and not row.disabled


def _view(row: Row[Any]) -> UserView:
    return UserView(
        name=row.name,
        role=Role(row.role),
        epoch=row.epoch,
        has_password=row.has_password,
        created_at=row.created_at,
        changed_at=row.changed_at,
        disabled_at=row.disabled_at,
    )
