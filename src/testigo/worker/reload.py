"""Fresh code in development: notices that a Python file under a folder has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["Reloader"]

LOOK_SECONDS = 0.5
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})


class Reloader:
    """A thread that looks at the files' times."""

    def __init__(self, folder: Path, changed: Callable[[], object], *, look_seconds: float = LOOK_SECONDS) -> None:
        """`changed` is called from the thread, after each look that found a change."""
        self._folder = folder
        self._changed = changed
        self._look_seconds = look_seconds
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="testigo-reload", daemon=True)

    def start(self) -> None:
        """Begin; what is there now counts as known."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()

    def _run(self) -> None:
        known = self._times()
        while not self._closing.wait(self._look_seconds):
            found = self._times()
            if found != known:
                self._changed()
            known = found

    def _times(self) -> dict[Path, int]:
        times: dict[Path, int] = {}
        folders = [self._folder]
        for folder in folders:
            try:
                entries = list(folder.iterdir())
            except OSError:
                continue
            for entry in entries:
                if entry.name.startswith(".") or entry.name in _PASSED_OVER:
                    continue
                if entry.suffix == ".py":
                    times[entry] = _changed_at(entry)
                elif entry.is_dir() and not entry.is_symlink():
                    folders.append(entry)
        return times


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
