"""A whole analyser server: its spool, its runs and its door, opened together and closed together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testigo.evidence.server.door import Server
from testigo.evidence.server.runs import Runs, Terms
from testigo.evidence.server.spool import CAPACITY_BYTES, Spool

__all__ = ["opened"]


@contextmanager
def opened(
    terms: Terms,
    token: str,
    *,
    port: int = 0,
    path: Path | None = None,
    spool: Path | None = None,
    capacity_bytes: int = CAPACITY_BYTES,
) -> Iterator[Server]:
    """A server that listens; whoever has it calls `serve_forever`. Everything that it holds is gone in the end.

    Raises `Broken` if nobody can listen there, or the spool is not ours alone.
    """
    room = Spool.open(spool, capacity_bytes=capacity_bytes)
    try:
        runs = Runs(room, terms)
        try:
            with Server(runs, token, port=port, path=path) as server:
                yield server
        finally:
            runs.close()
    finally:
        room.close()
