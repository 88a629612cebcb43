"""The keeper's mailbox: what its threads, and the signals, hand to its main thread."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Mailbox"]


class Mailbox:
    """Calls that the main thread makes for others, and a socket that is readable when there are some."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._is_told = False
        self.bell, self._ringer = socket.socketpair()
        """The end to watch for reading."""
        self.bell.setblocking(False)
        self._ringer.setblocking(False)

    @property
    def signal_fd(self) -> int:
        """Where `signal.set_wakeup_fd` rings."""
        return self._ringer.fileno()

    def post(self, call: Callable[[], object]) -> None:
        """Have the main thread make this call, in its next pass; from any thread."""
        self._calls.append(call)
        if not self._is_told:
            self._is_told = True
            with suppress(BlockingIOError):  # a full socket is readable
                self._ringer.send(b"\0")

    def deliver(self) -> None:
        """Make the calls that are there."""
        with suppress(BlockingIOError):
            self.bell.recv(4096)
        self._is_told = False
        while self._calls:
            self._calls.popleft()()

    def close(self) -> None:
        """Close both ends."""
        self.bell.close()
        self._ringer.close()
