"""One of several server processes, as `testigo.web.several` starts it: on a socket that it is given."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import threading
from collections.abc import Sequence

from testigo.web.serve import Server
from testigo.web.server import from_environment
from testigo.worker.lines import JsonLines

__all__ = ["log_to_stderr", "main"]

_LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, or until whoever started this process is gone."""
    parser = argparse.ArgumentParser("python -m testigo.web", description="Serve the panel and the API.")
    parser.add_argument("entrance", type=int, help="descriptor of the socket that listens")
    parser.add_argument("alive", type=int, help="descriptor of a pipe that ends with whoever started this")
    parser.add_argument("--log-level", default="warning")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    log_to_stderr(given.log_level, as_json=given.json)
    server = Server(from_environment())
    threading.Thread(target=_watch, args=(given.alive, server), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=given.entrance)])


def log_to_stderr(level: str, *, as_json: bool) -> None:
    """Have what a server says of itself written to stderr, a line each."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(_LINE))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for name in ("alembic", "httpx", "uvicorn"):  # each says at `info` what nobody asked
        logging.getLogger(name).setLevel(logging.WARNING)


def _watch(alive: int, server: Server) -> None:
    """Stop the server when the pipe ends: nobody writes into it."""
    os.read(alive, 1)
    server.should_exit = True


if __name__ == "__main__":
    main()
