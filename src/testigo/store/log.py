"""The store's log: in an outage each of its sentences is said now and then, and not with every try of everybody."""

from __future__ import annotations

import logging
import time

from testigo.settings import STORE

__all__ = ["Sparing", "log"]


class Sparing(logging.Filter):
    """Lets a sentence pass that was not said for so long, whatever numbers are filled in; warnings always pass."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._said_at: dict[tuple[object, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this is to be said."""
        if record.levelno >= logging.WARNING:
            return True
        sentence = (record.msg, *(str(each) for each in record.args or () if not isinstance(each, int | float)))
        now, said_at = time.monotonic(), self._said_at.get(sentence)
        if said_at is not None and now - said_at < self._seconds:
            return False
        self._said_at[sentence] = now
        return True


log = logging.getLogger("testigo.store")
"""For what the store tells its operator."""

log.addFilter(Sparing(STORE.log_again_seconds))
