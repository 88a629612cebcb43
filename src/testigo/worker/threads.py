"""Threads for the handlers that are no coroutines: as many as there are slots, each made when first needed."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["Threads"]


class Threads:
    """Runs what it is given, each in a context of its own. Its methods belong to one thread.

    The threads never hold up the end of the process. What they are given never raises.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._in_hand = 0
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def do(self, work: Callable[[], None]) -> None:
        """Have a thread do this, the next that is free."""
        self._in_hand += 1
        if self._in_hand > self._threads and self._threads < self._most:
            self._threads += 1
            threading.Thread(target=self._run, name=f"testigo-run-{self._threads}", daemon=True).start()
        self._work.put(work)

    def did(self) -> None:
        """One piece of work is done."""
        self._in_hand -= 1

    def _run(self) -> None:
        while True:
            contextvars.Context().run(self._work.get())
