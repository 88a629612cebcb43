"""Where a page of a listing begins, how long it is, and where the next one is."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import Field

from testigo.authority.read.pages import Cursor
from testigo.settings import LIMITS
from testigo.web.api.shapes import Shape
from testigo.web.security.place import path_of, url

__all__ = ["LimitField", "PageQuery", "SequenceQuery", "next_address"]

LimitField = Annotated[int, Field(ge=1, le=LIMITS.page_max)]


class PageQuery(Shape):
    """Which page of a listing."""

    after: str | None = None
    """Go on where a page ended; taken from its `next`."""
    limit: LimitField = 100
    """How many at most."""

    @property
    def cursor(self) -> Cursor | None:
        """The cursor that was given."""
        return None if self.after is None else Cursor(self.after)


class SequenceQuery(Shape):
    """Which part of what is numbered."""

    after: Annotated[int, Field(ge=0)] = 0
    """What follows this number; 0 is the beginning."""
    limit: LimitField = 100
    """How many at most."""


def next_address(request: Request, cursor: object) -> str | None:
    """The address of the page that begins at this cursor, without scheme and host; None without one."""
    if cursor is None:
        return None
    query = request.url.include_query_params(after=str(cursor)).query
    return f"{url(request, path_of(request))}?{query}"
