"""Processes by pid *and* start time: a pid alone may belong to another process by now (spec P-31)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Process", "process", "works_in"]


@dataclass(frozen=True, slots=True)
class Process:
    """One process for ever: no other has the same pid and the same start."""

    pid: int
    started: str

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to exactly this process; False if it is gone, whatever has its pid now.

        On Linux the pid cannot change hands between the look at the start time and the signal,
        because both go through a pidfd's process. Elsewhere a moment remains.
        """
        if sys.platform != "linux":
            return process(self.pid) == self and _kill(self.pid, number)
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if process(self.pid) != self:
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def process(pid: int) -> Process | None:
    """The process that has this pid now; None if there is none, or only what its parent has not yet reaped."""
    if sys.platform != "linux":
        answer = subprocess.run(
            ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, env={"LC_ALL": "C"}
        )
        state, _, started = answer.stdout.strip().partition(" ")
    else:
        try:
            # The name in parentheses may hold blanks and parentheses; what follows the last one is regular.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        state, started = fields[0], fields[19]
    return Process(pid, started.strip()) if started and state[0] not in "ZX" else None


def works_in(pid: int, directory: Path) -> bool:
    """Whether a process has this directory as its working directory; True if the system will not say."""
    if sys.platform != "linux":
        return True
    try:
        return os.path.samestat(Path(f"/proc/{pid}/cwd").stat(), directory.stat())
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return True


def _kill(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
