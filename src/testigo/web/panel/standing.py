"""How queues stand, put together of three readings: what waits, since when, and what went through of late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from testigo.authority.read.pages import Cursor, Page
from testigo.authority.read.queues import QueueView, oldest_ready, queues
from testigo.statistics.model import Span, Totals
from testigo.statistics.read import totals
from testigo.web.door import Door
from testigo.web.panel.attempts import attempt

__all__ = ["LATE_SECONDS", "QueueRow", "queue_rows", "rows_of"]

LATE_SECONDS = 300.0
"""A queue whose oldest job could be claimed for so long is called late."""

_MINUTES = Span.HOUR.seconds / 60


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as the panel lists it; `past` is its last hour, None where nothing is known of it."""

    view: QueueView
    oldest_at: datetime | None
    past: Totals | None

    def state(self, now: datetime) -> str:
        """How it stands, in the word that the panel has an icon for."""
        if self.view.pause is not None:
            return "paused"
        if self.view.ready.n and not self.view.sessions.n:
            return "unserved"
        late = self.oldest_at is not None and (now - self.oldest_at).total_seconds() > LATE_SECONDS
        return "late" if late else "ok"

    @property
    def in_per_minute(self) -> float | None:
        """Jobs that came, a minute, over the last hour."""
        return None if self.past is None else self.past.requested / _MINUTES

    @property
    def out_per_minute(self) -> float | None:
        """Jobs that ended, a minute, over the last hour."""
        return None if self.past is None else _ended(self.past) / _MINUTES

    @property
    def clear_seconds(self) -> float | None:
        """In how long nothing would wait, if all went on as in the last hour; None where it would not come to that."""
        if not self.view.ready.n or self.view.ready.more or self.past is None:
            return None
        gain = (_ended(self.past) - self.past.requested) / Span.HOUR.seconds
        return self.view.ready.n / gain if gain > 0 else None


async def queue_rows(door: Door, *, after: Cursor | None = None, limit: int = 50) -> Page[QueueRow] | None:
    """A page of queues by name; None when to count them takes too long."""
    found = await attempt(door, queues, after=after, limit=limit)
    return None if found is None else Page(await rows_of(door, found.items), found.next)


async def rows_of(door: Door, views: tuple[QueueView, ...]) -> tuple[QueueRow, ...]:
    """These queues with the rest of what the panel lists of them."""
    oldest: Mapping[str, datetime] = await attempt(door, oldest_ready, [view.name for view in views]) or {}
    past = {each.name: each for each in await attempt(door, totals, Span.HOUR) or ()}
    return tuple(QueueRow(view, oldest.get(view.name), past.get(view.name)) for view in views)


def _ended(past: Totals) -> int:
    return past.succeeded + past.failed + past.cancelled
