"""Parts of a page that may lack: each is read by itself, and a slow one leaves the others (panel.md *Query rules*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from testigo.errors import AuthorityUnavailable, Busy
from testigo.web.door import Door

__all__ = ["attempt"]

P = ParamSpec("P")
R = TypeVar("R")


async def attempt(
    door: Door, command: Callable[Concatenate[Connection, P], R], /, *args: P.args, **kwargs: P.kwargs
) -> R | None:
    """What a reading answers, or None when it takes too long. Raises what else `Door.read` raises."""
    try:
        return await door.read(command, *args, **kwargs)
    except AuthorityUnavailable:
        raise
    except Busy:
        return None
