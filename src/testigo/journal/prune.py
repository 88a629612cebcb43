"""prune_events: forget the beginnings of streams (spec P-27).

Only a prefix is ever removed, and the stream's floor says in the same transaction where it now
begins: a reader sees every event above the floor or is told that its cursor is too old.

Every stream is that of a queue; those of groups, which are kept for ever (spec B-11), are not made yet.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.prune import Pruned
from testigo.authority.prune.batches import check
from testigo.settings import RETENTION, STORE
from testigo.store.sql import Statement

__all__ = ["prune_events"]

_STREAMS_MAX = 100
"""Streams of one transaction."""

# A stream has no gap, so its oldest event is the one after its floor, and whoever locks that prunes the
# stream. Times never go back along a stream: what is old enough is a prefix of its next events, of which each
# stream that is held has an equal share.
_HOLD = Statement(
    """
    WITH held AS MATERIALIZED (
        SELECT s.name, s.floor
        FROM testigo.stream s
             CROSS JOIN LATERAL (
                 SELECT
                 FROM testigo.event e
                 WHERE e.stream = s.name AND e.sequence = s.floor + 1 AND e.at < now() - :days * interval '1 day'
                 FOR UPDATE SKIP LOCKED
             ) AS oldest
        WHERE s.head > s.floor
        LIMIT least(:limit, :streams)
    ),
    share AS MATERIALIZED (
        SELECT :limit / greatest(1, count(*)) AS n, count(*) = :streams AS cut FROM held
    )
    SELECT h.name AS stream, h.floor, max(e.sequence) AS last, count(*) = share.n OR share.cut AS more
    FROM held h
         CROSS JOIN share
         CROSS JOIN LATERAL (
             SELECT e.sequence, e.at
             FROM testigo.event e
             WHERE e.stream = h.name AND e.sequence > h.floor
             ORDER BY e.sequence
             LIMIT share.n
         ) AS e
    WHERE e.at < now() - :days * interval '1 day'
    GROUP BY h.name, h.floor, share.n, share.cut
    """
)

_REMOVE = Statement(
    """
    DELETE FROM testigo.event
    WHERE stream = :stream AND sequence > CAST(:floor AS bigint) AND sequence <= CAST(:last AS bigint)
    RETURNING 1
    """
)

# The heads come last, in the order of their names (decision record 0008); each is there already.
_RAISE = Statement(
    """
    INSERT INTO testigo.stream (name, head, floor, appended_at)
    SELECT name, last, last, now()
    FROM unnest(CAST(:streams AS text[]), CAST(:lasts AS bigint[])) AS pruned (name, last)
    ORDER BY name
    ON CONFLICT (name) DO UPDATE SET floor = excluded.floor
    RETURNING 1
    """
)


def prune_events(
    c: Connection, *, older_than_days: int = RETENTION.events_days, limit: int = STORE.sweep_rows
) -> Pruned:
    """Remove at most `limit` events that are older, from the beginnings of the streams that have any.

    What is left of a stream is without a gap. Repeating it removes what is still there, so it needs no receipt.
    """
    check(older_than_days, limit)
    held = _HOLD.rows(c, days=older_than_days, limit=limit, streams=_STREAMS_MAX)
    pruned = sum(len(_REMOVE.rows(c, stream=row.stream, floor=row.floor, last=row.last)) for row in held)
    if held:
        _RAISE.rows(c, streams=[row.stream for row in held], lasts=[row.last for row in held])
    return Pruned(pruned, any(row.more for row in held))
