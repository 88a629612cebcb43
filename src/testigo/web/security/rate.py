"""How much one caller is answered: a bucket per credential, filled at a steady rate.

Each server process counts for itself, so several allow as many times as much: the bucket keeps one caller
from taking the others' share, and no more. Tries of passwords are counted in the database, by `access.throttle`.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from testigo.errors import TooManyRequests

__all__ = ["Rate"]

_CALLERS_MAX = 10_000
"""Buckets that are remembered; a caller whose bucket was forgotten finds a full one."""


class Rate:
    """The buckets of one server process."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, caller: str) -> None:
        """Count a request of this caller. Raises `TooManyRequests`, with `retry_after_seconds`, for one too many."""
        now = self._clock()
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _CALLERS_MAX:
            self._buckets.popitem(last=False)
        if left < 1:
            raise TooManyRequests(
                "You ask for more in a short time than one caller is answered.",
                limit=f"{self._per_second:g} requests a second",
                retry_after_seconds=math.ceil((1 - left) / self._per_second),
            )
