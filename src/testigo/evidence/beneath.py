"""Files that lie beneath a folder, opened so that no link leads out of it, whoever swaps what for what meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Place"]

_BASE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Nothing is waited for, as a pipe would be."""


class Place(NamedTuple):
    """What lies `below` the folder `base`, which nobody who asks has chosen; `base` itself without any names."""

    base: Path
    below: tuple[str, ...] = ()

    def opened(self, *names: str) -> int:
        """A descriptor, for reading, of what lies there, or below it at `names`.

        Each name is opened in the folder before it, and none is followed where it is a link, nor is the base where it
        is what is opened: that raises `OSError`.
        """
        names = (*self.below, *names)
        at = os.open(self.base, _BASE if names else _BASE | os.O_NOFOLLOW)
        for n, name in enumerate(names, 1):
            folder = at
            way = os.O_DIRECTORY if n < len(names) else 0
            try:
                at = os.open(name, _BASE | os.O_NOFOLLOW | way, dir_fd=folder)
            finally:
                os.close(folder)
        return at
