"""How many failed jobs are open, beside *Failed* on every page: looked at once a second at most, however many ask."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from testigo.authority.read import Count, open_failures
from testigo.errors import Busy

if TYPE_CHECKING:
    from testigo.web.door import Door

__all__ = ["Badge"]

SINCE = timedelta(days=7)
"""As far back as the page of failed jobs looks by itself."""


class Badge:
    """The number of one server process. Whoever asks while another looks is told what was there before."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock()
        self._looks = False
        self.count: Count | None = None
        """None as long as it is not known."""

    async def look(self, door: Door) -> None:
        """Look again, if the last look was long enough ago. A database that does not tell is no reason for no page."""
        if self._looks or self._clock() < self._next:
            return
        self._looks, self._next = True, self._clock() + self._seconds
        try:
            self.count = await door.read(open_failures, datetime.now(UTC) - SINCE)
        except Busy:
            self.count = None
        finally:
            self._looks = False
