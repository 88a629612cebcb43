"""The server's log: one file beside its data, kept below a bound, without values of the user's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testigo.settings import EMBEDDED

__all__ = ["DISCREET", "Log"]

TAIL_BYTES = 2000

DISCREET = {"log_min_messages": "log", "log_error_verbosity": "terse", "log_min_error_statement": "panic"}
"""Settings under which the log tells of the server and never of statements: an error's text and detail
hold values ("Key (name)=(…) already exists"), and its caller is told anyway. It also hardly grows."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log file at `path`, which several processes append to."""

    path: Path

    def open(self) -> int:
        """A descriptor to append with, for the server; the file is made for us alone."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def trim(self) -> None:
        """Cut the file to its newest quarter if it is too long. A running server appends to what is left."""
        kept = EMBEDDED.log_bytes_max // 4
        if self.size() > EMBEDDED.log_bytes_max:
            with self.path.open("r+b", buffering=0) as file:
                file.seek(-kept, os.SEEK_END)
                lines = file.read(kept).partition(b"\n")[2]
                file.truncate(0)
                file.seek(0)
                file.write(lines)

    def size(self) -> int:
        """Where the next line will begin."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def tail(self, start: int = 0) -> str:
        """The last lines that were written after `start`; at most 2 000 bytes."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(min(start, size), size - TAIL_BYTES))
                return file.read().decode(errors="replace").strip()
        except FileNotFoundError:
            return ""
