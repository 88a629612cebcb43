"""A runner as its parent holds it: a process group, a socket, and the frames on it (spec P-20)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from testigo.store.keys import KEYS_VARIABLE
from testigo.worker.protocol import Frames

__all__ = ["PUBLISHER", "RUNNER", "Child", "credentials_of", "environment"]

RUNNER = ("-m", "testigo.worker.runner")
PUBLISHER = ("-E", "-P", "-m", "testigo.worker.publisher")
"""Neither the folder that it runs in nor a variable adds to what it imports: it holds credentials (spec P-30)."""

_READ_BYTES = 1024 * 1024
_SECRETS = frozenset({"TESTIGO_URL", KEYS_VARIABLE, "DATABASE_URL"})


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """What a runner gets of the keeper's environment: all but the ways to the database."""
    kept = {name: value for name, value in own.items() if name not in _SECRETS and not name.startswith("PG")}
    return {**kept, "TESTIGO_RUNNER": "1"}


def credentials_of(own: Mapping[str, str]) -> dict[str, str]:
    """What the publisher is told of that, besides the URL: where the keys are, and what libpq reads."""
    return {name: value for name, value in own.items() if name == KEYS_VARIABLE or name.startswith("PG")}


class Child:
    """One process that speaks the protocol. Only the thread that spawned it may use it.

    That thread is the parent at whose death the kernel kills the child.
    """

    def __init__(self, arguments: Sequence[str], *, program: Sequence[str] = RUNNER) -> None:
        """Spawn `python -m testigo.worker.runner --socket FD …`, in a process group of its own."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, *program, "--socket", str(theirs.fileno()), *arguments]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=environment(os.environ),
            )
        ours.setblocking(False)
        self.socket = ours
        self.pid = self._process.pid
        self._frames = Frames()
        self._unsent = bytearray()
        self._closed = False

    def send(self, frames: bytes) -> None:
        """Send these bytes, or as many as the socket takes; the rest goes by `flush`."""
        self._unsent += frames
        self.flush()

    @property
    def has_unsent(self) -> bool:
        """Whether `flush` should be called once the socket is writable."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Send what is left, as far as the socket takes it. A child that is gone reads nothing."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()

    def receive(self) -> tuple[list[list[Any]], bool]:
        """The messages that have come, and whether more can.

        Raises `ProtocolBroken` for what is no message.
        """
        try:
            piece = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return [], True
        except OSError:
            piece = b""
        return self._frames.feed(piece), bool(piece)

    def last_words(self) -> list[list[Any]]:
        """All messages that came from a child that has exited. Raises `ProtocolBroken` for what is none."""
        messages: list[list[Any]] = []
        while True:
            try:
                piece = self.socket.recv(_READ_BYTES)
            except OSError:  # what it left behind holds the other end, or ours is closed
                return messages
            if not piece:
                return messages
            messages += self._frames.feed(piece)

    def kill(self) -> None:
        """SIGKILL its whole group: its number is ours until `exit_status` has read the end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def has_exited(self) -> bool:
        """Whether the process has come to its end."""
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def exit_status(self) -> int:
        """The end of a process that has exited: its status, or the signal that killed it, negative.

        What is left of its group is killed first, while no other process can have its number; where
        the end can only be seen by reading it, in the moment after.
        """
        self.kill()
        return self._process.wait()

    def close(self) -> None:
        """Close the socket: to the child, that is the end."""
        if not self._closed:
            self._closed = True
            self.socket.close()
