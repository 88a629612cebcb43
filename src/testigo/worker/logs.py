"""The standard library's logging inside a run: records become lines of the run's log.

The handler is added after the application was loaded, so that its own configuration stays what it is.
"""

from __future__ import annotations

import logging

from testigo.rules.text import tidy
from testigo.worker.context import LEVELS, current_port

__all__ = ["keep_logs"]


def keep_logs() -> None:
    """Keep what is logged in runs. An application that configured nothing logs from INFO on, and warnings are shown.

    Adding a handler to the root would otherwise silence the one that Python falls back on.
    """
    root = logging.getLogger()
    if not root.handlers and logging.lastResort is not None:
        root.addHandler(logging.lastResort)
        if root.level == logging.WARNING:
            root.setLevel(logging.INFO)
    root.addHandler(_RunLogs())


class _RunLogs(logging.Handler):
    """Gives each record to the run in which it was made; a record made outside any run is not its affair."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's message, with its traceback. Arguments that do not fit the message cost only themselves."""
        port = current_port()
        if port is None:
            return
        try:
            text = self.format(record)
        except Exception:
            text = tidy(record.msg)
        port.log(_level(record.levelno), text)


def _level(number: int) -> str:
    """The level whose range holds this number; each is ten wide."""
    return LEVELS[min(max(number // 10, 1), len(LEVELS)) - 1]
