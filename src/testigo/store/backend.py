"""A process of the database's server, as one is known where no driver of a database is loaded: in a runner."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

__all__ = ["Backend"]


class Backend(NamedTuple):
    """One process of the server for ever: no other has the same pid and began at the same time."""

    pid: int
    started: datetime
