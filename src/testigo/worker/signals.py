"""The signals of a keeper: what asks it to stop, and the ends of its children."""

from __future__ import annotations

import signal

__all__ = ["Signals"]


class Signals:
    """Those that come from its making until it is closed, when all is as it was before.

    A SIGHUP that is ignored, as `nohup` has it, stays so.
    """

    def __init__(self, wakeup_fd: int) -> None:
        """Each also rings at `wakeup_fd`, so that whoever waits there wakes up."""
        hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, *hangup)
        self._came: list[int] = []
        self._before = {
            number: signal.signal(number, lambda number, _: self._came.append(number)) for number in numbers
        }
        self._fd_before = signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)

    def stops(self) -> list[int]:
        """Those that ask this process to stop and have come since the last call."""
        came, self._came = self._came, []  # one that comes meanwhile is in one of the two
        return [number for number in came if number != signal.SIGCHLD]

    def close(self) -> None:
        """Heed none any more."""
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
