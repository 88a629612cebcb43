"""A wire to a server that a test cuts, delays, half-closes, or lets go silent, and neither end is told why."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict

__all__ = ["Wire", "wire"]

_PIECE_BYTES = 65_536


class _Line:
    """One connection through a wire: its two ends, and whether anything passes."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.far = far
        self.passes = True
        self.listens = False
        """Whether its client has asked to hear wake-ups."""
        self.swallowed = False
        """Whether something was said on it that did not pass."""

    def close(self) -> None:
        """Both ends see the end of the other, in the middle of whatever was on its way."""
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Wire:
    """A TCP port that leads to a server's socket, for as many connections as come."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._entrance = socket.create_server(("127.0.0.1", 0))
        self._lines: list[_Line] = []
        self._to_refuse = 0
        self.delay_seconds = 0.0
        """How long each piece is held back, in either direction."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port to connect to."""
        port: int = self._entrance.getsockname()[1]
        return port

    def fall_silent(self) -> None:
        """Let nothing pass any more on the connections that there are; later ones are as before."""
        for line in self._lines:
            line.passes = False

    def has_swallowed(self) -> bool:
        """Whether something was said on a silent connection."""
        return any(line.swallowed for line in self._lines)

    def deafen(self) -> int:
        """The same for those that listen for wake-ups; how many there were."""
        listening = [line for line in self._lines if line.listens and line.passes]
        for line in listening:
            line.passes = False
        return len(listening)

    def cut(self) -> None:
        """End the connections that there are; later ones are as before."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.close()

    def half_close(self) -> None:
        """Tell each server that its client says nothing more; the client is not told."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.far.shutdown(socket.SHUT_WR)

    def refuse(self, count: int) -> None:
        """Cut, and end the next connections as they come, so many of them."""
        self._to_refuse = count
        self.cut()

    def close(self) -> None:
        """Close every connection, and let no other in."""
        self._entrance.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._entrance.accept()
                if self._to_refuse:
                    self._to_refuse -= 1
                    near.close()
                    continue
                self._lead_on(near)

    def _lead_on(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(self._socket_path)
        except OSError:
            near.close()
            far.close()
            return
        line = _Line(near, far)
        self._lines.append(line)
        for pair in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(line, *pair), daemon=True).start()

    def _pass_on(self, line: _Line, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(_PIECE_BYTES)) and line.passes:
                line.listens = line.listens or b"LISTEN " in data
                if self.delay_seconds:
                    time.sleep(self.delay_seconds)
                target.sendall(data)
            if line.passes:
                target.shutdown(socket.SHUT_WR)
            line.swallowed = line.swallowed or bool(data)


@contextmanager
def wire(url: str) -> Iterator[tuple[Wire, str]]:
    """A wire to the server of `url`, and the URL that leads through it."""
    behind = conninfo_to_dict(url)
    laid = Wire(f"{behind['host']}/.s.PGSQL.{behind['port']}")
    try:
        yield laid, f"postgresql://{behind['user']}@127.0.0.1:{laid.port}/{behind['dbname']}?sslmode=disable"
    finally:
        laid.close()
