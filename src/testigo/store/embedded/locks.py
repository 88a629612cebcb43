"""Advisory locks on files: the kernel releases them when their holders are gone, however they died."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

from testigo.errors import EmbeddedUnusable

__all__ = ["POLL_SECONDS", "FileLock"]

POLL_SECONDS = 0.01

_open: set[FileLock] = set()
_guard = threading.Lock()


class FileLock:
    """One lock, held by this process and never by a child that it forks.

    The file is opened when the lock is asked for and closed when it is let go; it is never
    removed, because a lock on a removed file guards nothing. A file system without such locks is
    refused with EmbeddedUnusable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file, for a process that shall hold the lock as well."""
        assert self._descriptor is not None, "the lock is not held"
        return self._descriptor

    def share(self) -> None:
        """Hold the lock together with others, where no process of testigo can hold it alone."""
        if not self._lock(fcntl.LOCK_SH):
            self.close()
            raise EmbeddedUnusable(
                f"{self.path} is locked by a program that is not testigo.", remedy="End that program and try again."
            )

    def try_alone(self) -> bool:
        """Hold the lock alone, also in exchange for a shared hold; False, and nothing is held, if others hold it."""
        if self._lock(fcntl.LOCK_EX):
            return True
        self.close()
        return False

    def alone(self, seconds: float) -> bool:
        """The same, but wait so long for the others. (By polling: a blocking flock knows no deadline.)"""
        deadline = time.monotonic() + seconds
        while not self.try_alone():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def release(self) -> None:
        """Let go, also for processes that inherited the open file. Without effect when nothing is held."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.close()

    def close(self) -> None:
        """Let go for this process alone: a process that was given the descriptor keeps the lock."""
        with _guard:
            _open.discard(self)
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _lock(self, kind: int) -> bool:
        try:
            with _guard:
                if self._descriptor is None:
                    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                    self._descriptor = os.open(self.path, flags, 0o600)
                    _open.add(self)
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            self.close()
            raise EmbeddedUnusable(
                f"{self.path} cannot be locked: {error.strerror}.",
                remedy="Choose a directory of your own on a local disk.",
            ) from error
        return True


def _forget() -> None:
    """In a forked child: the locks are the parent's, so close the files but do not unlock them."""
    for lock in list(_open):
        lock.close()


# The guard is held across the fork, so that no thread is between opening a file and noting it.
os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_guard.release)
os.register_at_fork(after_in_child=_forget)
