"""Which logins and tokens still are what they were when a stream was opened with them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from testigo.access.who import Via, Who
from testigo.settings import ACCESS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["still_valid"]

# An open stream is no use of a login: whoever does nothing is logged out although a page is open.
_VALID = Statement(
    """
    SELECT CAST(l.id AS text) AS id
    FROM testigo.login l
         JOIN testigo.user u ON u.name = l.name AND u.epoch = l.epoch AND u.disabled_at IS NULL
    WHERE l.id = ANY(CAST(:logins AS uuid[]))
      AND l.expires_at > now()
      AND l.seen_at > now() - :idle_hours * interval '1 hour'
    UNION ALL
    SELECT CAST(id AS text)
    FROM testigo.token
    WHERE id = ANY(CAST(:tokens AS uuid[])) AND revoked_at IS NULL AND expires_at > now()
    """
)


@single_statement
def still_valid(c: Connection, callers: Collection[Who]) -> frozenset[str]:
    """The credentials of these callers that have not ended, by their ids."""
    tokens = {who.credential for who in callers if who.via is Via.TOKEN}
    logins = {who.credential for who in callers} - tokens
    rows = _VALID.rows(c, logins=sorted(logins), tokens=sorted(tokens), idle_hours=ACCESS.login_idle_hours)
    return frozenset(row.id for row in rows)
