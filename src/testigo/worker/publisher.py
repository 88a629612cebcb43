"""The publisher: the child of a keeper that publishes, on a database connection of its own (spec P-30).

    python -E -P -m testigo.worker.publisher --socket FD --slots 1

It is held as runners are: the same conversation, the same limits, the same death with its keeper. But it loads
the engine's own application and nothing of the user's, and the first frame that its keeper sends tells it where
the database is: no environment and no argument does, which others could read.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from testigo.authority.actions import SessionId
from testigo.authority.start import Held
from testigo.errors import InHandler
from testigo.evidence.transport import places
from testigo.store.database import Database
from testigo.store.urls import own_directory
from testigo.worker.context import RunContext, current_port
from testigo.worker.leaving import leave
from testigo.worker.ports import RunPort
from testigo.worker.protocol import Frames
from testigo.worker.runner import serve

__all__ = ["Publishing", "main", "publishing"]

ENGINE = "testigo.scan.jobs:app"
"""The only application that is ever loaded here."""

_LENGTH_BYTES = 4


class _Installation(NamedTuple):
    database: Database
    directory: Path
    keys: Path
    token: Callable[[], str]


_installations: list[_Installation] = []


class Publishing(NamedTuple):
    """What the run of a publisher has that no other run has."""

    database: Database
    directory: Path
    """Where the installation's own files lie."""
    keys: Path
    """The folder of its keys."""
    token: Callable[[], str]
    """What proves to the analyser server that we are of this installation."""
    held: Held
    session_id: SessionId


def publishing(ctx: RunContext) -> Publishing:
    """What this run publishes with. Raises `InHandler` in whatever is no publisher."""
    port = current_port()
    if not _installations or not isinstance(port, RunPort) or port.owner is None:
        raise InHandler("Only a worker's publisher publishes.", remedy="Run it by `testigo worker`, not inline.")
    lease_id, session_id = port.owner
    return Publishing(*_installations[0], Held(ctx.job_id, lease_id, ctx.epoch), SessionId(session_id))


def main() -> int:
    """Publish what a keeper sends until it says that this is all. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="testigo.worker.publisher")
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    given = parser.parse_args()
    return serve(given.socket, given.slots, ENGINE, prepare=_take_credentials)


def _take_credentials(sock: socket.socket) -> None:
    """Read the first frame, and not a byte of the next."""
    head = _exactly(sock, _LENGTH_BYTES)
    messages = Frames().feed(head + _exactly(sock, int.from_bytes(head)))
    match messages:
        case [["credentials", str(url), str(schema), dict(variables)]]:
            os.environ.update(variables)
            database = Database(url, schema=schema, pool_size=1)
            database.connected = partial(_tell, database)
            _installations.append(
                _Installation(database, own_directory(url), places.keys(url), partial(places.token, url))
            )
        case _:
            leave("the keeper did not say where the database is")


def _tell(database: Database) -> None:
    """Before a connection is used its session tells of it, so that its locks end with the session (spec P-10)."""
    port = current_port()
    if isinstance(port, RunPort):
        port.connected(database.backends()).result()


def _exactly(sock: socket.socket, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        piece = sock.recv(size - len(body))
        if not piece:
            leave()
        body += piece
    return bytes(body)


if __name__ == "__main__":
    # By its own name, so that what its application imports of this module is this module.
    from testigo.worker import publisher

    sys.exit(publisher.main())
