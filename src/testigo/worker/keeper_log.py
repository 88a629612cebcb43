"""The keeper's log is written by a thread of its own: a terminal or a pipe that takes nothing must stop no worker.

A Ctrl-S, a pager and a log collector that hangs all do that: whoever writes then waits, perhaps for ever.
A keeper that waited there would neither report what ended nor stop what is past its limit (spec P-19, P-22).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Full, Queue

__all__ = ["LINES_MAX", "written_apart"]

LINES_MAX = 10_000
"""Lines that wait to be written, before those that come are let go."""
LAST_WORDS_SECONDS = 1.0
"""At the end, what waits is written for so long at most."""


@contextmanager
def written_apart() -> Iterator[None]:
    """Meanwhile nobody who logs waits for what the root's handlers do; they get the same records, in order."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    apart = _Apart(handlers)
    root.handlers[:] = [apart]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        apart.close()


class _Apart(logging.Handler):
    """Hands records to a thread."""

    def __init__(self, handlers: Sequence[logging.Handler]) -> None:
        super().__init__()
        self._handlers = handlers
        self._records: Queue[logging.LogRecord | None] = Queue(LINES_MAX)
        self._thread = threading.Thread(target=self._write_all, name="testigo-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have it written soon, or let it go: work goes on either way."""
        try:
            self._records.put_nowait(record)
        except Full:
            return

    def close(self) -> None:
        """Write what waits, as far as it is taken."""
        try:
            self._records.put_nowait(None)
        except Full:
            return  # nobody takes anything
        finally:
            super().close()
        self._thread.join(LAST_WORDS_SECONDS)

    def _write_all(self) -> None:
        while (record := self._records.get()) is not None:
            for handler in self._handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)
