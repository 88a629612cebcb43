"""prune_access: forget logins and links that have ended, old tries and browsers, and the audit of over 400 days ago.

The chain of the audit stays whole: before a row goes, the head remembers its place and its digest, so
that the first row that stays can be verified. The database refuses to delete any other row.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune import Pruned
from testigo.rules import fields
from testigo.settings import ACCESS, LIMITS, STORE
from testigo.store.sql import Statement

__all__ = ["prune_access"]

_LOGINS = Statement(
    """
    DELETE FROM testigo.login
    WHERE id IN (SELECT id FROM testigo.login WHERE expires_at < now() LIMIT :limit FOR UPDATE SKIP LOCKED)
    RETURNING 1
    """
)

# What was used is remembered a little longer than it would have worked, for a resend of its use.
_LINKS = Statement(
    """
    DELETE FROM testigo.link
    WHERE digest IN (SELECT digest
                     FROM testigo.link
                     WHERE expires_at < now() - interval '1 hour'
                     LIMIT :limit
                     FOR UPDATE SKIP LOCKED)
    RETURNING 1
    """
)

_TRIES = Statement(
    """
    DELETE FROM testigo.login_try
    WHERE (scope, value) IN (SELECT scope, value
                             FROM testigo.login_try
                             WHERE last_at < now() - :minutes * interval '1 minute'
                             LIMIT :limit
                             FOR UPDATE SKIP LOCKED)
    RETURNING 1
    """
)

_BROWSERS = Statement(
    """
    DELETE FROM testigo.browser
    WHERE (digest, name) IN (SELECT digest, name
                             FROM testigo.browser
                             WHERE seen_at < now() - :days * interval '1 day'
                             LIMIT :limit
                             FOR UPDATE SKIP LOCKED)
    RETURNING 1
    """
)

# Times never go back along the chain, so the oldest by their times are its first.
_RAISE = Statement(
    """
    UPDATE testigo.audit_head h
    SET floor = last.n, floor_chain = last.chain
    FROM (SELECT n, chain
          FROM (SELECT n, chain
                FROM testigo.audit
                WHERE at < now() - :days * interval '1 day'
                ORDER BY at, n
                LIMIT :limit) AS old
          ORDER BY n DESC
          LIMIT 1) AS last
    WHERE last.n > h.floor
    RETURNING h.floor
    """
)

_AUDIT = Statement("DELETE FROM testigo.audit WHERE n <= :floor RETURNING 1")


def prune_access(c: Connection, *, limit: int = STORE.sweep_rows) -> Pruned:
    """Forget at most `limit` rows of each of these; tokens and users stay, for the audit tells of them."""
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    counts = [
        len(_LOGINS.rows(c, limit=limit)),
        len(_LINKS.rows(c, limit=limit)),
        len(_TRIES.rows(c, minutes=ACCESS.tries_minutes, limit=limit)),
        len(_BROWSERS.rows(c, days=ACCESS.browser_days, limit=limit)),
        _prune_audit(c, limit),
    ]
    return Pruned(sum(counts), more=limit in counts)


def _prune_audit(c: Connection, limit: int) -> int:
    raised = _RAISE.row(c, days=ACCESS.audit_days, limit=limit)
    return 0 if raised is None else len(_AUDIT.rows(c, floor=raised.floor))
