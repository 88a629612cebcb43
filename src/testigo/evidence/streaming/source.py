"""An open report: a regular file behind no link, in UTF-8, of bounded size and with bounded words.

The file is opened once and read from that descriptor alone, however often it is gone through, so that
nobody can put another into its place between two passes.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from types import TracebackType

from testigo.errors import EvidenceInvalid
from testigo.evidence.beneath import Place

__all__ = ["Source"]

FILE_BYTES_MAX = 4 * 1024**3
"""The largest report that is read at all."""

STRETCH_BYTES_MAX = 4 * 1024**2
"""The most bytes between two quotes: a parser keeps a text whole until it ends."""

DIGITS_MAX = 4_000
"""The most digits of a number: Python reads no more than 4,300, and says so where the parser does not listen."""

_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (DIGITS_MAX + 1))
_BOM = b"\xef\xbb\xbf"


class Source:
    """The bytes of a report, as a parser reads them.

    No link is followed at the end of a `path`, nor anywhere below the base of a `Place`.
    `name` is what errors call the file: what the caller gave, else its last part, never a path of
    this machine. Raises EvidenceInvalid for what is no regular file (a symbolic link, a pipe, a
    folder), is larger than `bytes_max` or is not in UTF-8.
    """

    def __init__(self, path: Path | Place, *, name: str | None = None, bytes_max: int = FILE_BYTES_MAX) -> None:
        place = path if isinstance(path, Place) else Place(path)
        self.name = (place.below or (place.base.name,))[-1] if name is None else name
        try:
            descriptor = place.opened()
        except OSError as error:
            raise EvidenceInvalid(f"{self.name} cannot be opened: {error.strerror}", field=self.name) from error
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise EvidenceInvalid(f"{self.name} is no regular file", field=self.name)
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        try:
            if found.st_size > bytes_max:
                raise self._too_large(bytes_max)
            self._bytes_max = bytes_max
            self._begin = self._after_mark()
        except BaseException:
            self._file.close()
            raise
        self.rewind()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def rewind(self) -> None:
        """Go back to the first byte of the text."""
        self._file.seek(self._begin)
        self._read = self._begin
        self._stretch = 0
        self._escaping = False
        self._inside = False
        self._number = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; none at the end.

        Raises EvidenceInvalid where a text, or what stands between two texts, goes on for more than
        4 MiB, where a number has more than 4,000 digits, and where the file has grown past its
        limit since it was opened.
        """
        chunk = self._file.read(size)
        self._read += len(chunk)
        if self._read > self._bytes_max:
            raise self._too_large(self._bytes_max)
        self._measure(chunk)
        return chunk

    def _measure(self, chunk: bytes) -> None:
        """Count the bytes since the last quote that is not escaped; an escape may be cut in two between chunks."""
        if self._escaping and chunk:
            chunk = b"\\" + chunk
            self._escaping = False
        trailing = len(chunk) - len(chunk.rstrip(b"\\"))
        if trailing % 2:
            self._escaping = True
            chunk = chunk[:-1]
        plain = chunk.replace(b"\\\\", b"..").replace(b'\\"', b"..")
        stretches = plain.split(b'"')
        longest = max(self._stretch + len(stretches[0]), max(map(len, stretches)))
        if longest > STRETCH_BYTES_MAX:
            raise EvidenceInvalid(
                f"{self.name} holds a text, or a gap between two texts, of more than {STRETCH_BYTES_MAX} bytes",
                field=self.name,
                limit=f"{STRETCH_BYTES_MAX} bytes",
            )
        self._stretch = len(stretches[-1]) + (self._stretch if len(stretches) == 1 else 0)
        self._read_numbers(stretches)

    def _read_numbers(self, stretches: list[bytes]) -> None:
        """Refuse a number that is longer than a parser can take; texts, which are every other stretch, may be."""
        outside = stretches[self._inside :: 2]
        if not self._inside:
            outside[0] = self._number + outside[0]
        if any(len(each) > DIGITS_MAX and _LONG_NUMBER.search(each) for each in outside):
            raise EvidenceInvalid(
                f"{self.name} holds a number of more than {DIGITS_MAX} digits",
                field=self.name,
                limit=f"{DIGITS_MAX} digits",
            )
        self._inside ^= len(stretches) % 2 == 0
        self._number = b"" if self._inside else outside[-1][-DIGITS_MAX - 1 :]

    def _after_mark(self) -> int:
        """Where the text begins: after a byte order mark of UTF-8. Other encodings are refused by their names."""
        first = self._file.read(4)
        if first.startswith(_BOM):
            return len(_BOM)
        for name, begins in (
            ("UTF-32", first in {b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"} or first.count(b"\x00") == 3),
            ("UTF-16", first.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in first),
        ):
            if begins:
                raise EvidenceInvalid(f"{self.name} is in {name}", field=self.name, limit="UTF-8")
        return 0

    def _too_large(self, bytes_max: int) -> EvidenceInvalid:
        return EvidenceInvalid(f"{self.name} is too large", field=self.name, limit=f"{bytes_max} bytes")
