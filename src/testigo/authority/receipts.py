"""Receipts: what a command answered, so that a resend finds it and does nothing (spec B-04, P-02, P-04).

A command's receipt is the last part of its statement, a plain INSERT; the unique key decides which
of two sends took effect. The one that breaks the key is rolled back whole, and reads the other's
receipt in a new statement: the same digest is the same command, any other a collision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, SessionAction
from testigo.errors import ActionIdCollision, Busy, Conflict, NotFound, ReceiptExpired, SessionReplaced
from testigo.rules.identity import command_digest, content_digest
from testigo.store.command import savepoint
from testigo.store.failures import constraint_of, sqlstate_of
from testigo.store.sql import Statement

__all__ = ["Kept", "digest_of", "exactly_once", "expired", "once", "outlived"]

_KEYS = frozenset({"receipt_pkey", "session_receipt_pkey", "successor_pkey"})
"""What can be there already although nobody at this snapshot sees it."""


class Kept(NamedTuple):
    """A receipt as it stands: the answer, and whether this send or an earlier one made it."""

    answer: Any
    replayed: bool


_READ = Statement(
    """
    SELECT r.digest, r.answer, CAST(:created_at AS timestamptz) <= i.receipt_floor AS past
    FROM testigo.installation i
         LEFT JOIN testigo.receipt r ON r.actor = :actor AND r.action = :action
    """
)

_READ_SESSION = Statement(
    """
    SELECT digest, answer
    FROM testigo.session_receipt
    WHERE session_id = CAST(:session AS uuid) AND n = :n AND ordinal = :ordinal
    """
)

_FILE = Statement(
    """
    INSERT INTO testigo.receipt (actor, action, digest, answer, created_at)
    SELECT :actor, :action, :digest, :answer, CAST(:created_at AS timestamptz)
    FROM testigo.installation
    WHERE CAST(:created_at AS timestamptz) > receipt_floor
    RETURNING 1
    """
)

_FILE_SESSION = Statement(
    """
    INSERT INTO testigo.session_receipt (session_id, n, ordinal, digest, answer)
    VALUES (CAST(:session AS uuid), :n, :ordinal, :digest, :answer)
    RETURNING 1
    """
)

_SESSION = Statement("SELECT state, low_water FROM testigo.session WHERE id = CAST(:session AS uuid)")


def digest_of(action: Action | SessionAction, command: str, content: object) -> str:
    """The digest of a command: its name and what the caller gave, without what was made for it."""
    text = json.dumps([command, content], separators=(",", ":"), sort_keys=True, default=_plain)
    return command_digest(action.actor, action.id, content_digest(text))


def once(c: Connection, action: Action | SessionAction, digest: str, send: Callable[[], str | None]) -> Kept | None:
    """Send a command whose statement files its own receipt; if that is filed already, return it.

    `send` runs the statement and returns the answer that it filed, or None when it filed none. A command
    that is sent twice finds what it did itself in its way, be it the receipt or any effect before it; so
    whatever is refused for what is there already, or is not there any more, is first looked up by its
    receipt (spec P-03).
    Raises `ActionIdCollision` when the receipt belongs to other content (spec P-02).
    """
    try:
        with savepoint(c):
            answer = send()
    except Exception as error:
        repeated = sqlstate_of(error) == "23505"
        found = _find(c, action, digest) if repeated or isinstance(error, Conflict | NotFound) else None
        if found is not None:
            return found
        if repeated and constraint_of(error) in _KEYS:
            # Above READ COMMITTED, or between two sends of which one is being undone: never "absent".
            raise Busy("This was done already, and its receipt cannot be read yet.") from error
        raise
    return None if answer is None else Kept(json.loads(answer), replayed=False)


def exactly_once(c: Connection, action: Action | SessionAction, digest: str, body: Callable[[], object]) -> Kept:
    """Run a command of several statements whose answer `body` returns, and file its receipt as the last.

    A receipt that is there already is the answer, and nothing is done (spec B-04, P-02). Raises
    `ReceiptExpired` for an action whose receipt may have been pruned (spec P-04).
    """
    found = _find(c, action, digest)
    if found is not None:
        return found
    receipt = once(c, action, digest, lambda: _file(c, action, digest, body()))
    if receipt is None:
        raise expired(action.id)
    return receipt


def expired(action: str) -> ReceiptExpired:
    """The refusal of a command that is older than the receipts that are kept."""
    return ReceiptExpired(
        "The command is older than the receipts that are kept, so it was not executed.", action=action
    )


def outlived(c: Connection, action: SessionAction, digest: str) -> Kept:
    """The receipt of a session's command that was not executed now, if an earlier send was (spec P-04).

    A session's receipts outlive it, so that the fate of its last commands can be resolved. Without
    one the command is refused: `ReceiptExpired` for an n that is past, else `SessionReplaced`.
    """
    found = _find(c, action, digest)
    if found is not None:
        return found
    row = _SESSION.row(c, session=action.session_id)
    if row is not None and action.n < row.low_water:
        raise expired(action.id)
    state = row.state if row else "unknown"
    raise SessionReplaced(
        f"The session is {state}, so the command was not executed.", session=action.session_id, state=state
    )


def _find(c: Connection, action: Action | SessionAction, digest: str) -> Kept | None:
    """The receipt, if there is one. Whether there was one is not known of an action at or below the floor."""
    if isinstance(action, SessionAction):
        row = _READ_SESSION.row(c, session=action.session_id, n=action.n, ordinal=action.ordinal)
        return _same((row.digest, row.answer), digest) if row else None
    (row,) = _READ.rows(c, actor=action.actor, action=action.id, created_at=action.created_at)
    if row.digest is not None:
        return _same((row.digest, row.answer), digest)
    if row.past:
        raise expired(action.id)
    return None


def _file(c: Connection, action: Action | SessionAction, digest: str, answer: object) -> str | None:
    text = json.dumps(answer, separators=(",", ":"))
    if isinstance(action, SessionAction):
        own = {"session": action.session_id, "n": action.n, "ordinal": action.ordinal}
        row = _FILE_SESSION.row(c, digest=digest, answer=text, **own)
    else:
        own = {"actor": action.actor, "action": action.id, "created_at": action.created_at}
        row = _FILE.row(c, digest=digest, answer=text, **own)
    return None if row is None else text


def _same(found: tuple[str, str], digest: str) -> Kept:
    if found[0] != digest:
        raise ActionIdCollision("This action id was used before with other content.")
    return Kept(json.loads(found[1]), replayed=True)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
