"""How a runner's process ends when its keeper is gone, or cannot be spoken with (spec P-20)."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import NoReturn

__all__ = ["die_with_parent", "leave", "watch"]

BROKEN_STATUS = 4
_PR_SET_PDEATHSIG = 1
_HANGUP = select.POLLHUP | getattr(select, "POLLRDHUP", 0)


def leave(why: str = "") -> NoReturn:
    """End this process at once, whatever its handlers do; without a reason, its keeper has gone.

    With the keeper gone nobody is left who would end what handlers started, so the whole process group
    goes, if it is this process's own.
    """
    if why:
        with suppress(Exception):
            print(f"testigo: the runner {os.getpid()} ends: {why}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(BROKEN_STATUS)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that spawned it ends: no handler can hold that up.

    Only Linux does this. A parent that ended before is noticed by the end of file that it left behind.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def watch(sock: socket.socket) -> None:
    """Leave when the keeper hangs up, even while a handler blocks the loop."""
    poll = select.poll()
    poll.register(sock, _HANGUP)

    def wait() -> None:
        poll.poll()
        leave()

    threading.Thread(target=wait, name="testigo-watch", daemon=True).start()
