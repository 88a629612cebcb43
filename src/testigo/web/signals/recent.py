"""The last events of a stream that somebody follows, read once and handed to everybody."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from testigo.journal.events import Event

__all__ = ["Recent"]

_KEPT = 2_000
"""Events that are kept of one stream: who is further behind reads the stream alone."""


class Recent:
    """Events without a gap up to `head`, the cursor from which the hub goes on; None until a follower has found it."""

    def __init__(self) -> None:
        self.head: int | None = None
        self.followers = 0
        self._events: deque[Event] = deque(maxlen=_KEPT)

    def begin(self, head: int) -> None:
        """Go on from here, unless somebody else has begun."""
        if self.head is None:
            self.head = head

    def append(self, events: Sequence[Event]) -> None:
        """Take what the hub has read after `head`. Where pruning left a gap before it, what was kept is dropped."""
        if self.head is None or events[0].sequence != self.head + 1:
            self._events.clear()
        self._events.extend(events)
        self.head = events[-1].sequence

    def after(self, cursor: int) -> list[Event] | None:
        """The events that follow this cursor; None if some of them are not kept here."""
        if self.head is None or cursor < self.head - len(self._events):
            return None
        return [event for event in self._events if event.sequence > cursor]
