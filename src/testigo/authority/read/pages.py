"""Pages of a listing: by key, never by offset, and never at more than a bounded cost (panel.md *Query rules*).

A cursor names the last item that its holder has seen, and the listing that it was made by: it is
refused by any other. It carries no authority: who forges one reaches a place in a list that they
may read anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, NewType, TypeVar

from testigo.errors import CursorInvalid, Invalid
from testigo.rules import fields
from testigo.settings import LIMITS

__all__ = [
    "FROM_NEWEST",
    "FROM_OLDEST",
    "Count",
    "Cursor",
    "Listing",
    "Page",
    "a_name",
    "an_id",
    "check_limit",
    "counted",
]

T = TypeVar("T")

Cursor = NewType("Cursor", str)
"""A place in a listing, as opaque text; made by `Page.next` alone."""

FROM_NEWEST = ("ffffffff-ffff-ffff-ffff-ffffffffffff",)
"""Where a listing by id begins that goes down."""

FROM_OLDEST = ("00000000-0000-0000-0000-000000000000",)
"""Where a listing by id begins that goes up."""

_SEAL_BYTES = 12
_CURSOR_CHARS_MAX = 2_000


class Count(NamedTuple):
    """How many there are, counted up to `LIMITS.count_max`; `more` says that there are more than `n`."""

    n: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.n:,}+" if self.more else f"{self.n:,}"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a listing, in its order, and where the next page begins.

    `next` is None at the end. A listing looks at a bounded number of rows for a page: where what is
    asked for is rare, `complete` is False, the page has what was found so far, perhaps nothing, and
    the search goes on from `next`.
    """

    items: tuple[T, ...]
    next: Cursor | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    """One listing, by its name and by what it was asked: whatever else makes its cursors others'.

    `parts` check what a position is made of, as `an_id` and `a_name` do.
    """

    name: str
    asked: tuple[object, ...]
    parts: tuple[Callable[[str], object], ...]

    def cursor(self, *position: str) -> Cursor:
        """The cursor that names this position."""
        body = json.dumps(position, ensure_ascii=False, separators=(",", ":")).encode()
        return Cursor(base64.urlsafe_b64encode(self._seal(body) + body).decode().rstrip("="))

    def position(self, cursor: Cursor | None, start: Sequence[str]) -> tuple[str, ...]:
        """The position that a cursor of this listing names, `start` without one; raises `CursorInvalid`."""
        if cursor is None:
            return tuple(start)
        try:
            return self._read(cursor)
        except (ValueError, TypeError, Invalid, binascii.Error, RecursionError):
            raise CursorInvalid(f"That is no cursor of this listing of {self.name}.", field="cursor") from None

    def page(
        self, found: Sequence[tuple[T, tuple[str, ...]]], limit: int, mark: tuple[str, ...] | None = None
    ) -> Page[T]:
        """A page of the items found, each with its position; one beyond `limit` says that there are more.

        `mark` is the position at which the search stopped short of the end.
        """
        items = tuple(item for item, _ in found[:limit])
        if len(found) > limit:
            return Page(items, self.cursor(*found[limit - 1][1]))
        if mark is not None:
            return Page(items, self.cursor(*mark), complete=len(items) == limit)
        return Page(items)

    def _read(self, cursor: object) -> tuple[str, ...]:
        if not isinstance(cursor, str) or len(cursor) > _CURSOR_CHARS_MAX:
            raise ValueError
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        position = json.loads(raw[_SEAL_BYTES:])
        if not isinstance(position, list) or len(position) != len(self.parts):
            raise ValueError
        for part, check in zip(position, self.parts, strict=True):
            check(part)
        if self.cursor(*position) != cursor:
            raise ValueError
        return tuple(position)

    def _seal(self, body: bytes) -> bytes:
        asked = json.dumps([self.name, self.asked], default=str).encode()
        return hashlib.sha256(asked + b"\n" + body).digest()[:_SEAL_BYTES]


def an_id(part: str) -> None:
    """Refuse a part of a position that is no id."""
    fields.must_be_id(part, field="cursor")


def a_name(part: str) -> None:
    """Refuse a part of a position that is no name."""
    fields.name(part, field="cursor")


def counted(n: int) -> Count:
    """The count of what a statement counted up to one more than `LIMITS.count_max`."""
    return Count(min(n, LIMITS.count_max), n > LIMITS.count_max)


def check_limit(limit: int) -> None:
    """Refuse a page of no items, or of more than `LIMITS.page_max`."""
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
