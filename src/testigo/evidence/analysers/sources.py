"""Lines of the tree's own files, for reports that name a place and do not show it."""

from __future__ import annotations

import io
import os
import stat
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from testigo.evidence.beneath import Place
from testigo.rules.evidence.redaction import redact

__all__ = ["Sources"]

FILE_BYTES_MAX = 8 * 1024**2
FILES_KEPT = 4
LINES_MAX = 8
"""The most lines that one place shows."""
NEAR_LINES = 3
"""How many lines before and after them are looked at with them for secrets."""

_KEYS = ("PRIVATE KEY", "PuTTY-User-Key-File-")


class Sources:
    """The files below `root`, of which the last few are kept. No link is followed on the way or at its end.

    A secret may go on beyond the lines that a place shows, which alone would not tell what they are a part of: so it is
    taken out with the lines around them in sight, and a key, which is long, with the whole file (spec D-14).
    """

    def __init__(self, root: Path) -> None:
        self._root = Place(root)
        self._kept: OrderedDict[str, list[str]] = OrderedDict()

    def lines(self, path: str | None, first: int | None, last: int | None = None) -> str | None:
        """The lines from `first` to `last` of the file at `path`, at most 8; None if they cannot be read."""
        if path is None or first is None:
            return None
        lines = self.every(path)
        end = first if last is None else max(first, min(last, first + LINES_MAX - 1))
        from_line = max(0, first - 1 - NEAR_LINES)
        clean = redact("".join(lines[from_line : end + NEAR_LINES])).split("\n")
        return "\n".join(clean[first - 1 - from_line : end - from_line]).rstrip("\n") or None

    def text(self, path: str) -> str:
        """The whole file, as UTF-8. Raises OSError or UnicodeDecodeError, and OSError for one above 8 MiB."""
        return self._read(path).decode()

    def every(self, path: str) -> list[str]:
        """All lines of the file at `path`; none where it cannot be read."""
        if path in self._kept:
            self._kept.move_to_end(path)
            return self._kept[path]
        lines: list[str] = []
        with suppress(OSError):
            # As Python counts lines, and the analysers with it: \n, \r\n and \r end one, and no other character.
            text = io.StringIO(self._read(path).decode(errors="replace"), newline=None).read()
            clean = redact(text) if any(sign in text for sign in _KEYS) else text
            lines = io.StringIO(clean, newline="\n").readlines()
        self._kept[path] = lines
        if len(self._kept) > FILES_KEPT:
            self._kept.popitem(last=False)
        return lines

    def _read(self, path: str) -> bytes:
        with os.fdopen(self._root.opened(*path.split("/")), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_BYTES_MAX:
                raise OSError("it is no regular file, or too large")
            return file.read(FILE_BYTES_MAX)
