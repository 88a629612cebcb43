"""The audit: who did what, when, to what, why, and how it ended; rows that are added and never changed.

Each row's `chain` is the digest of all the rest of it and of the chain of the row before: who changes
or removes one row, behind the triggers' back, has to write every later one anew, and the `chain` of a
later row that somebody kept elsewhere tells of it. A row's digest is that of the identity object

    {"v": 1, "t": "audit", "previous": …, "n": …, "at": microseconds since 1970, "actor": …, …}

as `testigo.rules.identity.digest` makes it, so that anybody can verify it with any tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row

from testigo.access.who import Who
from testigo.authority.actions import Action
from testigo.authority.read.pages import Cursor, Listing, Page, check_limit
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.identity import digest
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["AuditEntry", "AuditView", "Result", "Verified", "audits", "record", "verify"]


class Result(StrEnum):
    """How what was ordered ended."""

    DONE = "done"
    DENIED = "denied"
    """Who ordered it had no right to."""
    REFUSED = "refused"
    """The command itself refused it: its code says why."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What is to be recorded. `digest` is that of the order; `code` that of the error, if it was not done."""

    who: Who
    what: str
    objects: tuple[str, ...]
    reason: str
    result: Result
    action: Action
    digest: str
    code: str | None = None
    address: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class AuditView:
    """A row of the audit. `n` counts them from 1; times are UTC, and the database's."""

    n: int
    at: datetime
    actor: str
    role: str
    via: str
    credential: str
    what: str
    objects: tuple[str, ...]
    reason: str
    result: Result
    code: str | None
    action: str
    asked_at: datetime
    digest: str
    address: str | None
    request: str | None
    chain: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at some rows of the chain found: `broken` is the first row that does not fit, None if all do.

    `checked` rows fit, up to the row `upto`; `more` says that the chain goes on.
    """

    checked: int
    upto: int
    broken: int | None
    more: bool
    chain: str


# The clock is read under the lock, so that times never go back along the chain.
_HEAD = Statement(
    """
    SELECT n, chain, greatest(at, clock_timestamp()) AS at
    FROM testigo.audit_head
    FOR NO KEY UPDATE
    """
)

# A resend that waited for the head sees by now what the first send wrote.
_ADD = Statement(
    """
    WITH added AS (
        INSERT INTO testigo.audit (
            n, at, actor, role, via, credential, what, objects, reason, result, code, action, asked_at, digest,
            address, request, chain
        )
        SELECT :n, CAST(:at AS timestamptz), :actor, :role, :via, :credential, :what, CAST(:objects AS text[]),
               :reason, :result, CAST(:code AS text), :action, CAST(:asked_at AS timestamptz), :digest,
               CAST(:address AS text), CAST(:request AS text), :chain
        ON CONFLICT (actor, action, (coalesce(code, ''))) DO NOTHING
        RETURNING n, at, chain
    )
    UPDATE testigo.audit_head h
    SET n = added.n, at = added.at, chain = added.chain
    FROM added
    RETURNING h.n
    """
)

# As with jobs: the walk is bounded, and its last row the mark from which to go on. Times never go back along
# the chain, so a span of time is a span of the walk.
_LIST = Statement(
    """
    SELECT w.wanted, w.step, a.*
    FROM (
        SELECT a.n, row_number() OVER (ORDER BY a.n DESC) AS step,
               (CAST(:who AS text) IS NULL OR a.actor = :who)
                   AND (CAST(:what AS text) IS NULL OR a.what = :what)
                   AND (CAST(:object AS text) IS NULL OR :object = ANY (a.objects)) AS wanted
        FROM testigo.audit a
        WHERE a.n < :before
          AND a.n < coalesce((SELECT u.n
                              FROM testigo.audit u
                              WHERE u.at >= CAST(:until AS timestamptz)
                              ORDER BY u.at, u.n
                              LIMIT 1), :last)
          AND a.n >= CASE WHEN CAST(:since AS timestamptz) IS NULL THEN 0
                          ELSE coalesce((SELECT s.n
                                         FROM testigo.audit s
                                         WHERE s.at >= CAST(:since AS timestamptz)
                                         ORDER BY s.at, s.n
                                         LIMIT 1), :last) END
        ORDER BY a.n DESC
        LIMIT :walk
    ) AS w
    CROSS JOIN LATERAL (SELECT * FROM testigo.audit WHERE n = w.n OFFSET 0) AS a
    WHERE w.wanted OR w.step = :walk
    ORDER BY w.n DESC
    LIMIT :limit + 1
    """
)

# Nobody who verifies waits: what is added meanwhile is above the head that this statement sees.
_CHAIN = Statement(
    """
    SELECT h.n AS head, h.chain AS head_chain, h.floor, h.floor_chain, previous.chain AS previous, a.*
    FROM testigo.audit_head h
         LEFT JOIN testigo.audit previous ON previous.n = :after
         LEFT JOIN LATERAL (
             SELECT * FROM testigo.audit WHERE n > greatest(h.floor, :after) ORDER BY n LIMIT :limit
         ) AS a ON true
    ORDER BY a.n
    """
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record(c: Connection, entry: AuditEntry) -> None:
    """Add a row, in this transaction: the last thing that it does, for everybody's next row waits for its end.

    An action that has a row with this code is not recorded twice.
    """
    (head,) = _HEAD.rows(c)
    values: dict[str, Any] = {
        "n": head.n + 1,
        "at": head.at,
        "actor": entry.who.actor,
        "role": str(entry.who.role),
        "via": str(entry.who.via),
        "credential": entry.who.credential,
        "what": entry.what,
        "objects": list(entry.objects),
        "reason": entry.reason,
        "result": str(entry.result),
        "code": entry.code,
        "action": entry.action.id,
        "asked_at": entry.action.created_at,
        "digest": entry.digest,
        "address": entry.address,
        "request": entry.request,
    }
    _ADD.rows(c, **values, chain=_chained(head.chain, values))


@single_statement
def audits(
    c: Connection,
    *,
    who: str | None = None,
    what: str | None = None,
    object: str | None = None,  # noqa: A002
    since: datetime | None = None,
    until: datetime | None = None,
    before: Cursor | None = None,
    limit: int = 100,
) -> Page[AuditView]:
    """Rows of the audit from the newest: of this actor (`user:ana`), of what was done (`jobs.cancel`), to this object.

    `since` is included, `until` is not. One page looks at `LIMITS.walk_rows` rows at most: see `Page.complete`.
    """
    check_limit(limit)
    wanted = {"who": who, "what": what, "object": object}
    for name, value in wanted.items():
        if value is not None:
            fields.name(value, field=name)
    times = {"since": since, "until": until}
    span = {name: None if at is None else fields.moment(at, field=name) for name, at in times.items()}
    listing = Listing("audits", (*wanted.values(), *span.values()), (_a_place,))
    (start,) = listing.position(before, (str(fields.BIGINT_MAX),))
    bounds = {"before": int(start), "last": fields.BIGINT_MAX, "walk": LIMITS.walk_rows}
    rows = _LIST.rows(c, **wanted, **span, **bounds, limit=limit)
    found = [(_view(row), (str(row.n),)) for row in rows if row.wanted]
    mark = (str(rows[-1].n),) if rows and rows[-1].step == LIMITS.walk_rows else None
    return listing.page(found, limit, mark)


@single_statement
def verify(c: Connection, *, after: int = 0, limit: int = LIMITS.page_max) -> Verified:
    """Check the chain behind the row `after`, so many rows of it: each one's place, and that it was not changed.

    Begin with 0, and go on with `Verified.upto`. At the end of the chain the head has to agree as well.
    """
    check_limit(limit)
    fields.whole(after, field="after", low=0, high=fields.BIGINT_MAX)
    rows = _CHAIN.rows(c, after=after, limit=limit)
    head = rows[0]
    place, chain = (head.floor, head.floor_chain) if after <= head.floor else (after, head.previous)
    checked = 0
    for row in rows:
        if row.n is None or row.n > head.head:
            break
        if row.n != place + 1 or chain is None or _chained(chain, _values(row)) != row.chain:
            return Verified(checked, place, place + 1, more=False, chain=chain or "")
        place, chain = row.n, row.chain
        checked += 1
    more = checked == limit and place < head.head
    at_end = place == head.head and chain == head.head_chain
    return Verified(checked, place, None if more or at_end else place + 1, more, chain or "")


def _chained(previous: str, values: Mapping[str, Any]) -> str:
    times = {name: (values[name] - _EPOCH) // timedelta(microseconds=1) for name in ("at", "asked_at")}
    return digest("audit", {**values, **times, "previous": previous})


def _values(row: Row[Any]) -> dict[str, Any]:
    """What of a row is in its digest."""
    view = _view(row)
    values = {name: getattr(view, name) for name in AuditView.__dataclass_fields__ if name != "chain"}
    return values | {"objects": list(view.objects), "result": str(view.result)}


def _view(row: Row[Any]) -> AuditView:
    return AuditView(
        n=row.n,
        at=row.at,
        actor=row.actor,
        role=row.role,
        via=row.via,
        credential=row.credential,
        what=row.what,
        objects=tuple(row.objects),
        reason=row.reason,
        result=Result(row.result),
        code=row.code,
        action=row.action,
        asked_at=row.asked_at,
        digest=row.digest,
        address=row.address,
        request=row.request,
        chain=row.chain,
    )


def _a_place(part: str) -> None:
    """Refuse a part of a position that is no number of a row."""
    if not part.isdecimal() or not part.isascii() or int(part) > fields.BIGINT_MAX:
        raise Invalid("it is no row's number", field="cursor")
