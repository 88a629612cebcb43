"""How often a password may be tried, by name and by address; kept in the database, for several servers at once.

A try is counted before the password is looked at, so that a thousand at once are a thousand tries, and
taken back when it succeeds. After five failures the next tries wait, each longer, up to five minutes;
a try that comes too soon is refused and not counted: nobody is locked out for ever by whoever guesses.
"""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

from sqlalchemy import Connection

from testigo.errors import TooManyRequests
from testigo.rules.identity import content_digest
from testigo.rules.text import tidy
from testigo.settings import ACCESS
from testigo.store.sql import Statement

__all__ = ["begin_try", "forgive", "network_of"]

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

_FORGIVE_ADDRESS = Statement(
    """
    UPDATE testigo.login_try
    SET tries = greatest(tries - 1, 0), next_at = clock_timestamp()
    WHERE scope = 'address' AND value = :address
    """
)

_FORGET_NAME = Statement("DELETE FROM testigo.login_try WHERE scope = 'name' AND value = :name")


def begin_try(c: Connection, name: str, address: str | None) -> None:
    """Count a try to log in as `name` from `address`, before the password is looked at.

    Raises `TooManyRequests`, whose fact `retry_after_seconds` is a whole number, when one of the two
    has to wait; then nothing is counted. `name` is whatever was typed, and kept as a digest alone.
    """
    asked = (
        [("name", _digest(name))] if address is None else [("address", network_of(address)), ("name", _digest(name))]
    )
    found = _BEGIN.rows(
        c,
        scopes=[scope for scope, _ in asked],
        values=[value for _, value in asked],
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
        _COUNT.rows(c, scope=row.scope, value=row.value, tries=row.tries + 1, wait=_wait_seconds(row.tries + 1))


def forgive(c: Connection, name: str, address: str | None) -> None:
    """Take a try back that succeeded: the name's failures are forgotten, the address's others are not."""
    if address is not None:
        _FORGIVE_ADDRESS.rows(c, address=network_of(address))
    _FORGET_NAME.rows(c, name=_digest(name))


def network_of(address: str) -> str:
    """What addresses are counted under together: of IPv6, those of one network, for whoever has one has 2**64."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return tidy(address, bytes_max=200)
    if isinstance(known, IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ip_network((known, 64), strict=False))


def _wait_seconds(tries: int) -> float:
    """How long the next try waits after so many."""
    over = tries - ACCESS.tries_free
    if over < 0:
        return 0.0
    return float(min(ACCESS.tries_wait_cap_seconds, ACCESS.tries_wait_first_seconds * 2.0 ** min(over, 30)))


def _digest(name: str) -> str:
    return content_digest(name.strip().lower().encode(errors="surrogatepass"))
