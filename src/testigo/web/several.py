"""Several server processes on one socket: one that dies is replaced, and none outlives whoever started them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

__all__ = ["Several"]

_log = logging.getLogger("testigo.web")

_AGAIN_SECONDS = 1.0
"""Between two starts of a process in the same place: one that cannot start is not started in a frenzy."""
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0
"""How much longer than they give their requests the processes are waited for, before they are killed."""


class Several:
    """Runs `count` processes of `python -m testigo.web` on a socket that listens, until SIGINT or SIGTERM.

    They find the installation in the environment. Each holds the end of a pipe: when this process is gone,
    however it went, they hear that and stop.
    """

    def __init__(self, entrance: socket.socket, count: int, stop_seconds: float, arguments: Sequence[str]) -> None:
        self._entrance = entrance
        self._count = count
        self._stop_seconds = stop_seconds
        self._arguments = arguments
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self._stopping = threading.Event()

    def run(self) -> None:
        """Serve until told to stop, and return when all of them have ended."""
        before = [signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)]
        alive, ours = os.pipe()
        started = [-_AGAIN_SECONDS] * self._count
        try:
            while not self._stopping.is_set():
                for place, process in enumerate(self._processes):
                    now = time.monotonic()
                    if (process is None or process.poll() is not None) and now - started[place] >= _AGAIN_SECONDS:
                        if process is not None:
                            _log.warning("server process %d ended with %s", process.pid, process.returncode)
                        self._processes[place], started[place] = self._start(alive), now
                self._stopping.wait(_LOOK_SECONDS)
        finally:
            os.close(alive)
            os.close(ours)
            self._end()
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
                signal.signal(number, handler)

    def _start(self, alive: int) -> subprocess.Popen[bytes]:
        """One process. In a group of its own it is not met by a terminal's Ctrl-C, which is for this one to pass on."""
        shared = self._entrance.fileno()
        command = [sys.executable, "-m", "testigo.web", str(shared), str(alive), *self._arguments]
        return subprocess.Popen(command, pass_fds=(shared, alive), stdin=subprocess.DEVNULL, process_group=0)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def _end(self) -> None:
        """Have every process stop, and kill those that do not."""
        running = [process for process in self._processes if process is not None and process.poll() is None]
        for process in running:
            process.terminate()
        until = time.monotonic() + self._stop_seconds + _GRACE_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
