"""prune_events: forget the beginning of a stream (spec P-27).

Only a prefix is ever removed, and the stream's floor says in the same transaction where it now
begins: a reader sees every event above the floor or is told that its cursor is too old.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.errors import Invalid, NotFound
from testigo.journal.streams import check_cursor, check_stream
from testigo.rules import fields
from testigo.settings import LIMITS, STORE
from testigo.store.sql import Statement

__all__ = ["PrunedEvents", "prune_events"]


class PrunedEvents(NamedTuple):
    """How many events were removed, where the stream now begins, and whether a repetition would remove more."""

    removed: int
    floor: int
    more: bool


_LOCK = Statement("SELECT floor, head FROM testigo.stream WHERE name = :stream FOR UPDATE")

# Along a stream time never goes backwards, so the last event that is old enough ends the prefix.
_LAST = Statement(
    """
    SELECT max(sequence) FILTER (WHERE n <= :limit) AS sequence, count(*) > :limit AS more
    FROM (SELECT sequence, at, row_number() OVER (ORDER BY sequence) AS n
          FROM testigo.event
          WHERE stream = :stream AND sequence > CAST(:floor AS bigint) AND sequence <= CAST(:up_to AS bigint)
          ORDER BY sequence
          LIMIT :limit + 1) AS oldest
    WHERE at < coalesce(CAST(:older_than AS timestamptz), 'infinity')
    """
)

_REMOVE = Statement(
    """
    WITH removed AS (
        DELETE FROM testigo.event
        WHERE stream = :stream AND sequence > CAST(:floor AS bigint) AND sequence <= CAST(:last AS bigint)
        RETURNING 1
    )
    UPDATE testigo.stream
    SET floor = :last
    WHERE name = :stream
    RETURNING (SELECT count(*) FROM removed) AS removed
    """
)


def prune_events(
    c: Connection,
    stream: str,
    *,
    older_than: datetime | None = None,
    up_to: int | None = None,
    limit: int = STORE.sweep_rows,
) -> PrunedEvents:
    """Remove from the beginning of a stream at most `limit` events that are old enough.

    Old enough are those appended before `older_than` and those whose sequence is at most `up_to`; if
    both are given, both must hold. Repeating it removes what is still there, so it needs no receipt.
    Raises `NotFound` for a stream that nothing was appended to, `Invalid` when neither bound is
    given, `CursorInvalid` for an `up_to` that is no sequence.
    """
    check_stream(stream)
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    if older_than is None and up_to is None:
        raise Invalid("Say which events are old enough.", field="older_than", limit="older_than, up_to, or both")
    if older_than is not None:
        fields.moment(older_than, field="older_than")
    if up_to is not None:
        check_cursor(up_to, field="up_to")
    locked = _LOCK.row(c, stream=stream)
    if locked is None:
        raise NotFound(f"There is no stream {stream!r}.", field="stream")
    bound = locked.head if up_to is None else min(up_to, locked.head)
    # Read after the lock is held: an earlier prune has committed its floor and its removals (P-07).
    (found,) = _LAST.rows(c, stream=stream, floor=locked.floor, up_to=bound, older_than=older_than, limit=limit)
    if found.sequence is None:
        return PrunedEvents(0, locked.floor, more=False)
    (removal,) = _REMOVE.rows(c, stream=stream, floor=locked.floor, last=found.sequence)
    return PrunedEvents(removal.removed, found.sequence, found.more)
