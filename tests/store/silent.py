"""A wire that can go silent: what passes through it stops, and neither end is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict

__all__ = ["Wire", "wire"]


class Wire:
    """A TCP port that leads to a server's socket, for as many connections as come."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._entrance = socket.create_server(("127.0.0.1", 0))
        self._passes = threading.Event()
        self._passes.set()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port to connect to."""
        port: int = self._entrance.getsockname()[1]
        return port

    def fall_silent(self) -> None:
        """Let nothing pass any more on the connections that there are; later ones are as before."""
        self._passes.clear()
        self._passes = threading.Event()
        self._passes.set()

    def close(self) -> None:
        """Close every connection."""
        self._entrance.close()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._entrance.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._socket_path)
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(*pair, self._passes), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, passes: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while (data := source.recv(65536)) and passes.is_set():
            target.sendall(data)
        if passes.is_set():
            target.shutdown(socket.SHUT_WR)


@contextmanager
def wire(url: str) -> Iterator[tuple[Wire, str]]:
    """A wire to the server of `url`, and the URL that leads through it."""
    behind = conninfo_to_dict(url)
    laid = Wire(f"{behind['host']}/.s.PGSQL.{behind['port']}")
    try:
        yield laid, f"postgresql://{behind['user']}@127.0.0.1:{laid.port}/{behind['dbname']}?sslmode=disable"
    finally:
        laid.close()
