"""The log of a worker as lines of JSON, for who collects them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

__all__ = ["JsonLines"]


class JsonLines(logging.Formatter):
    """A line of the log as an object: its time, level, logger and text, and of an error the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the text holds."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
