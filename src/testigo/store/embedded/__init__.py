"""The embedded server: a real PostgreSQL 18 out of a wheel, shared by the processes of one directory.

    with EmbeddedServer.use(Path(".testigo")) as server:
        engine = create_engine(server.url)

The first process that uses a directory starts its server, others join it, and the last that leaves
stops it. Each may be killed at any time. In the directory lie

    data/         the database; `postgresql.conf` in it is the user's to change
    server.log    what the server says of itself, at most about 1 MiB
    server.json   where the server is met, and its process
    door, users, alive    locks

For root the server runs as `nobody`, in a data directory that belongs to that account, also where
the way to it is closed to others; if the wheel itself is closed to `nobody`, its programs are copied
once to `/var/lib/testigo`. Nothing that was there before changes its mode or owner (spec P-31, P-32).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL

from testigo.errors import EmbeddedUnusable

if sys.platform != "win32":
    from testigo.store.embedded.address import PORT
    from testigo.store.embedded.postmaster import DATABASE
    from testigo.store.embedded.sharing import Seat, join, leave
    from testigo.store.embedded.unswayed import unswayed, written

__all__ = ["EmbeddedServer"]


class EmbeddedServer:
    """One use of a directory's server, by any thread of this process, until `close` or the interpreter's exit.

    A forked child may connect as long as its parent uses the server; to use it in its own right it
    calls `use` itself. Closing the parent's object in the child does nothing.
    """

    def __init__(self, seat: Seat) -> None:
        self._seat: Seat | None = seat
        self._url = URL.create(
            "postgresql+psycopg",
            username=DATABASE,
            database=DATABASE,
            query={"host": seat.folder, "port": str(PORT)},
        )

    @classmethod
    def use(cls, directory: Path, *, starts: Callable[[], object] = lambda: None) -> EmbeddedServer:
        """Start the server of `directory`, or join it, and return when it answers.

        `starts` is called before a start, and not where it is joined: for whoever tells people what they wait for.

        A server that was killed is started again, for all its users, at the same URL, by the next
        use. Blocks for as long as a start takes (a first one makes the database); waits at most
        `EMBEDDED.start_seconds` for each step. Raises EmbeddedUnusable, with what to do, if the
        directory, the machine or the wheel does not allow it. (spec P-31, P-32)
        """
        if sys.platform == "win32":
            raise EmbeddedUnusable(
                "The embedded server does not run on Windows.",
                remedy="Use WSL 2, or name a PostgreSQL server in TESTIGO_URL.",
            )
        return cls(join(directory, starts))

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database `testigo`, over a Unix socket that only this account can reach.

        libpq's variables that are set by now lead nobody elsewhere who uses it.
        """
        return written(self._url).render_as_string()

    @property
    def location(self) -> URL:
        """The same for connections of ours, which no variable of the environment leads elsewhere."""
        return self._url.update_query_dict(unswayed())

    def close(self) -> None:
        """Leave; the last user of all processes stops the server and waits for its end. May be called again."""
        seat, self._seat = self._seat, None
        if seat is not None:
            leave(seat)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
