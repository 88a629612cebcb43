"""How often a password may be tried; kept in the database, for several servers at once.

A try is counted before the password is looked at, so that a thousand at once are a thousand tries, and
taken back when it succeeds; one that comes too soon is refused and not counted. Two promises hold together:

- *Guessing is bounded.* An address waits after five failures, each time longer, up to five minutes; a name is
  tried by browsers that are not known for it 30 times in a quarter of an hour, however many addresses they have.
- *Whoever has the password gets in.* A browser that has logged in as somebody is known for that name, until the
  password or role changes: its tries are counted by themselves, and so are those of a login that goes on. A stranger
  who polls takes the tries of their own address, and not those of the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.access.names import spelled
from testigo.errors import Invalid, TooManyRequests
from testigo.rules.identity import content_digest
from testigo.rules.text import tidy
from testigo.settings import ACCESS
from testigo.store.sql import Statement

__all__ = ["Counted", "begin_own_try", "begin_try", "forgive", "network_of", "remember"]


class Counted(NamedTuple):
    """What a try was counted under: `address`, `name`, `browser` or `login`, and which of them."""

    scope: str
    value: str


# Rows are locked in the order of their keys. What was forgotten begins anew.
_BEGIN = Statement(
    """
    INSERT INTO testigo.login_try AS t (scope, value, tries, last_at, next_at)
    SELECT scope, value, 0, clock_timestamp(), clock_timestamp()
    FROM unnest(CAST(:scopes AS text[]), CAST(:values AS text[])) AS asked(scope, value)
    ORDER BY scope, value
    ON CONFLICT (scope, value) DO UPDATE
        SET tries = CASE WHEN t.last_at < clock_timestamp() - :minutes * interval '1 minute' THEN 0 ELSE t.tries END
    RETURNING scope, value, tries,
              CAST(extract(epoch FROM next_at - clock_timestamp()) AS double precision) AS wait_seconds
    """
)

_COUNT = Statement(
    """
    UPDATE testigo.login_try
    SET tries = :tries, last_at = clock_timestamp(), next_at = clock_timestamp() + :wait * interval '1 second'
    WHERE scope = :scope AND value = :value
    """
)

# A name's tries are those since the first of them: whoever goes on for ever does not have them add up for ever.
_COUNT_NAME = Statement(
    """
    UPDATE testigo.login_try
    SET tries = :tries,
        last_at = CASE WHEN :tries = 1 THEN clock_timestamp() ELSE last_at END,
        next_at = CASE WHEN :tries < :most THEN clock_timestamp() ELSE last_at + :minutes * interval '1 minute' END
    WHERE scope = :scope AND value = :value
    """
)

_FORGIVE = Statement(
    """
    UPDATE testigo.login_try
    SET tries = greatest(tries - 1, 0), next_at = clock_timestamp()
    WHERE scope = :scope AND value = :value
    """
)

_FORGET = Statement("DELETE FROM testigo.login_try WHERE scope = :scope AND value = :value")

_REMEMBER = Statement(
    """
    INSERT INTO testigo.browser (digest, name, epoch, seen_at)
    VALUES (:digest, :name, :epoch, now())
    ON CONFLICT (digest, name) DO UPDATE SET epoch = excluded.epoch, seen_at = excluded.seen_at
    """
)

_IS_KNOWN = Statement(
    """
    SELECT 1
    FROM testigo.browser b JOIN testigo.user u ON u.name = b.name
    WHERE b.digest = :digest AND b.name = :name AND b.epoch = u.epoch AND u.disabled_at IS NULL
      AND b.seen_at > now() - :days * interval '1 day'
    """
)


def begin_try(c: Connection, name: str, address: str | None, browser: str | None = None) -> tuple[Counted, ...]:
    """Count a try to log in as `name` from `address`, before the password is looked at; returns what it is counted by.

    `browser` is the digest of what the browser was remembered by. Raises `TooManyRequests`, whose fact
    `retry_after_seconds` is a whole number, when it has to wait; then nothing is counted. `name` is whatever was
    typed, and kept as a digest alone.
    """
    if browser is not None and _is_known(c, browser, name):
        return _begin(c, [Counted("browser", _digest(f"{browser} {name}"))])
    return _begin(c, [Counted("address", network_of(address or "")), Counted("name", _digest(name))])


def begin_own_try(c: Connection, login_id: str) -> tuple[Counted, ...]:
    """Count a try of whoever is logged in to say their password once more. Raises as `begin_try` does."""
    return _begin(c, [Counted("login", login_id)])


def forgive(c: Connection, counted: Sequence[Counted]) -> None:
    """Take a try back that succeeded: what only its owner could fail at is forgotten, others' failures are not."""
    for each in counted:
        statement = _FORGIVE if each.scope in ("address", "name") else _FORGET
        statement.rows(c, scope=each.scope, value=each.value)


def remember(c: Connection, browser: str, name: str, epoch: int) -> None:
    """Know a browser, by the digest of its secret, for one in which `name` has logged in while their epoch was this."""
    _REMEMBER.rows(c, digest=browser, name=name, epoch=epoch)


def network_of(address: str) -> str:
    """What addresses are counted under together: of IPv6, those of one network, for whoever has one has 2**64."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return tidy(address, bytes_max=200)
    if isinstance(known, IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ip_network((known, 64), strict=False))


def _begin(c: Connection, asked: Sequence[Counted]) -> tuple[Counted, ...]:
    found = _BEGIN.rows(
        c,
        scopes=[each.scope for each in asked],
        values=[each.value for each in asked],
        minutes=ACCESS.tries_minutes,
    )
    wait = max(row.wait_seconds for row in found)
    if wait > 0:
        seconds = int(wait) + 1
        raise TooManyRequests(
            f"The next try to log in has to wait for {seconds} s.",
            remedy="Wait as long as Retry-After says; then try again.",
            retry_after_seconds=seconds,
        )
    for row in found:
        where = {"scope": row.scope, "value": row.value, "tries": row.tries + 1}
        if row.scope == "name":
            _COUNT_NAME.rows(c, **where, most=ACCESS.name_tries, minutes=ACCESS.tries_minutes)
        else:
            _COUNT.rows(c, **where, wait=_wait_seconds(row.tries + 1))
    return tuple(asked)


def _wait_seconds(tries: int) -> float:
    """How long the next try waits after so many."""
    over = tries - ACCESS.tries_free
    if over < 0:
        return 0.0
    return float(min(ACCESS.tries_wait_cap_seconds, ACCESS.tries_wait_first_seconds * 2.0 ** min(over, 30)))


def _is_known(c: Connection, browser: str, name: str) -> bool:
    try:
        called = spelled(name, field="name")
    except Invalid:
        return False
    return _IS_KNOWN.row(c, digest=browser, name=called, days=ACCESS.browser_days) is not None


def _digest(name: str) -> str:
    return content_digest(name.strip().lower().encode(errors="surrogatepass"))
