"""Logins: one browser that is logged in, known by the secret in its cookie; and links that log in once.

A server logs somebody in by four steps, of which the second alone is not the database's:

    counted = throttle.begin_try(c, name, address, browser.digest)      raises TooManyRequests
    passwords.verified(known.password_hash, password)       known = users.known(c, name); None costs the same
    login = log_in(c, name, secret.digest, epoch=known.epoch, counted=counted, browser=browser.digest)
    who_logged_in(c, secret.digest)                         at each request, and at each look of an open stream

`secret` is made before the first try, and the commands here keep no receipt: a resend with the same
digest finds what the first one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.access.names import spelled
from testigo.access.roles import Role
from testigo.access.throttle import Counted, forgive, remember
from testigo.access.who import Via, Who
from testigo.authority.actions import Action, new_id
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import StateConflict, Unauthenticated
from testigo.rules import fields
from testigo.settings import ACCESS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = [
    "LinkReceipt",
    "Login",
    "LoginView",
    "end_logins",
    "log_in",
    "log_out",
    "logins_of",
    "make_link",
    "use_link",
    "who_logged_in",
]


@dataclass(frozen=True, slots=True)
class Login:
    """A login as it began: whose it is, and when it ends at the latest."""

    who: Who
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LoginView:
    """A login that goes on: how it began, when it was used last, and when it ends at the latest."""

    id: str
    via: Via
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LinkReceipt:
    """The receipt of a link: whom it logs in, and until when it works."""

    name: str
    expires_at: datetime
    replayed: bool


# The user's row is read under a lock: nobody is disabled, and no password changed, between here and the commit.
_BEGIN = Statement(
    """
    WITH allowed AS (
        SELECT u.name, u.epoch
        FROM testigo.user u
        WHERE u.name = :name AND u.epoch = :epoch AND u.disabled_at IS NULL
        FOR SHARE
    )
    INSERT INTO testigo.login (id, digest, name, via, epoch, created_at, expires_at, seen_at)
    SELECT CAST(:id AS uuid), :digest, name, :via, epoch, now(), now() + :hours * interval '1 hour', now()
    FROM allowed
    ON CONFLICT (digest) DO NOTHING
    RETURNING 1
    """
)

_FIND = Statement(
    """
    SELECT CAST(l.id AS text) AS id, l.name, l.via, l.epoch, l.expires_at, u.role
    FROM testigo.login l JOIN testigo.user u ON u.name = l.name
    WHERE l.digest = :digest AND l.epoch = u.epoch AND u.disabled_at IS NULL AND l.name = :name
    """
)

# As with tokens: to say when it was used last is worth no wait.
_WHO = Statement(
    """
    WITH found AS (
        SELECT l.id, l.via, l.epoch, u.name, u.role, l.seen_at < now() - :seconds * interval '1 second' AS stale
        FROM testigo.login l JOIN testigo.user u ON u.name = l.name
        WHERE l.digest = :digest AND l.epoch = u.epoch AND u.disabled_at IS NULL
          AND l.expires_at > now() AND l.seen_at > now() - :hours * interval '1 hour'
    ),
    seen AS (
        UPDATE testigo.login
        SET seen_at = now()
        WHERE id IN (SELECT l.id
                     FROM found JOIN testigo.login l ON l.id = found.id
                     WHERE found.stale
                     FOR NO KEY UPDATE OF l SKIP LOCKED)
    )
    SELECT CAST(id AS text) AS id, via, epoch, name, role FROM found
    """
)

_LOG_OUT = Statement("DELETE FROM testigo.login WHERE digest = :digest")

_END = Statement("DELETE FROM testigo.login WHERE name = :name AND id <> ALL (CAST(:but AS uuid[])) RETURNING 1")

_OF = Statement(
    """
    SELECT CAST(l.id AS text) AS id, l.via, l.created_at, l.seen_at, l.expires_at
    FROM testigo.login l JOIN testigo.user u ON u.name = l.name
    WHERE l.name = :name AND l.epoch = u.epoch AND u.disabled_at IS NULL
      AND l.expires_at > now() AND l.seen_at > now() - :hours * interval '1 hour'
    ORDER BY l.seen_at DESC, l.id
    LIMIT :limit
    """
)

_ADD_LINKED = Statement(
    """
    INSERT INTO testigo.user (name, role, created_at, changed_at)
    VALUES (:name, :role, now(), now())
    ON CONFLICT (name) DO NOTHING
    """
)

_LINK = Statement(
    """
    INSERT INTO testigo.link (digest, name, epoch, expires_at)
    SELECT :digest, name, epoch, now() + :minutes * interval '1 minute'
    FROM testigo.user
    WHERE name = :name AND disabled_at IS NULL
    RETURNING expires_at
    """
)

# Whoever comes second waits here for the first, and then finds the link used.
_USE = Statement(
    """
    UPDATE testigo.link
    SET login_id = CAST(:id AS uuid)
    WHERE digest = :digest AND login_id IS NULL AND expires_at > now()
    RETURNING name, epoch
    """
)

# What lets in once and is kept elsewhere is a link that is used when it is first seen.
_SPEND = Statement(
    """
    INSERT INTO testigo.link (digest, name, epoch, expires_at, login_id)
    VALUES (:digest, :name, :epoch, now() + :minutes * interval '1 minute', CAST(:id AS uuid))
    ON CONFLICT (digest) DO NOTHING
    RETURNING 1
    """
)

_USED = Statement(
    """
    SELECT l.name
    FROM testigo.link k JOIN testigo.login l ON l.id = k.login_id
    WHERE k.digest = :link AND l.digest = :digest
    """
)


def log_in(
    c: Connection,
    name: str,
    digest: str,
    *,
    epoch: int,
    counted: Sequence[Counted] = (),
    browser: str | None = None,
    once: str | None = None,
) -> Login:
    """Begin a login of the user `name`, whose password was verified while their epoch was this.

    `digest` is that of the cookie's new secret; `browser` that of what this browser is known by from now on, as
    theirs; `once` that of what they were let in by, where it lets nobody in again. The try that was `counted` is
    taken back. Raises `Unauthenticated` if the user was disabled or changed meanwhile, or `once` was used already.
    """
    who = spelled(name, field="name")
    fields.whole(epoch, field="epoch", low=1, high=fields.INTEGER_MAX)
    made = new_id()
    if once is not None:
        spent = _SPEND.row(c, digest=once, name=who, epoch=epoch, id=made, minutes=ACCESS.link_minutes)
        if spent is None and _USED.row(c, link=once, digest=digest) is None:
            raise Unauthenticated("This login was used already.", remedy="Begin again.")
    login = _begin(c, who, digest, Via.LOGIN, epoch, made)
    if login.who.credential == made:  # and not by an earlier send, which took the try back already
        forgive(c, counted)
        if browser is not None:
            remember(c, browser, who, epoch)
    return login


@single_statement
def who_logged_in(c: Connection, digest: str) -> Who | None:
    """Whose cookie's secret has this digest; None if nobody's, or if that login has ended.

    It has ended by its age, by not being used for so long, by `log_out`, or by any change of the user.
    The use is noted, at most once a minute.
    """
    row = _WHO.row(c, digest=digest, seconds=ACCESS.seen_seconds, hours=ACCESS.login_idle_hours)
    return None if row is None else _who(row)


@single_statement
def log_out(c: Connection, digest: str) -> None:
    """End the login with this digest, if there is one."""
    _LOG_OUT.rows(c, digest=digest)


@single_statement
def end_logins(c: Connection, name: str, *, but: str | None = None) -> int:
    """End every login of a user, `but` the one with this id; returns how many there were."""
    return len(_END.rows(c, name=spelled(name, field="name"), but=[] if but is None else [but]))


@single_statement
def logins_of(c: Connection, name: str, *, limit: int = 100) -> tuple[LoginView, ...]:
    """The logins of a user that have not ended, the last used first."""
    rows = _OF.rows(c, name=spelled(name, field="name"), hours=ACCESS.login_idle_hours, limit=limit)
    return tuple(LoginView(row.id, Via(row.via), row.created_at, row.seen_at, row.expires_at) for row in rows)


def make_link(c: Connection, name: str, digest: str, *, role: Role = Role.ADMIN, action: Action) -> LinkReceipt:
    """Make a link that logs in as `name` once, within 15 minutes; `digest` is that of the link's new secret.

    A user that is not there yet is added, with this role and no password; one that is keeps their own role.
    Raises `StateConflict` for a user that was disabled.
    """
    who = spelled(name, field="name")
    given = fields.member(role, Role, field="role")

    def link() -> dict[str, object]:
        _ADD_LINKED.rows(c, name=who, role=given)
        row = _LINK.row(c, digest=digest, name=who, minutes=ACCESS.link_minutes)
        if row is None:
            raise StateConflict(
                f"The user {who} is disabled.", field="name", remedy=f"Enable them: `testigo user enable {who}`."
            )
        return {"expires_at": row.expires_at.isoformat()}

    receipt = exactly_once(c, action, digest_of(action, "make_link", [who, given, digest]), link)
    return LinkReceipt(who, datetime.fromisoformat(receipt.answer["expires_at"]), receipt.replayed)


def use_link(c: Connection, link: str, digest: str) -> Login:
    """Begin a login by the link with the digest `link`; `digest` is that of the cookie's new secret.

    Raises `Unauthenticated` for a link that was used, has expired, or never was.
    """
    made = new_id()
    row = _USE.row(c, id=made, digest=link)
    if row is not None:
        return _begin(c, row.name, digest, Via.LINK, row.epoch, made)
    used = _USED.row(c, link=link, digest=digest)  # by this very command, whose answer was lost
    if used is None:
        raise Unauthenticated(
            "The link was used already, has expired, or is not one.",
            remedy="Have a new one made: restart `testigo serve`, or log in with a password.",
        )
    return _found(c, used.name, digest)


def _begin(c: Connection, name: str, digest: str, via: Via, epoch: int, made: str) -> Login:
    _BEGIN.rows(c, id=made, digest=digest, name=name, via=via, epoch=epoch, hours=ACCESS.login_hours)
    return _found(c, name, digest)


def _found(c: Connection, name: str, digest: str) -> Login:
    row = _FIND.row(c, digest=digest, name=name)
    if row is None:
        raise Unauthenticated("The user was disabled or changed meanwhile.", remedy="Log in again.")
    return Login(_who(row), row.expires_at)


def _who(row: Row[Any]) -> Who:
    return Who(row.name, Role(row.role), Via(row.via), row.id, row.epoch)
