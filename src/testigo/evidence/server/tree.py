"""A copy of the files that a run is about, so that nobody changes them while several programs read them.

No link is followed, neither on the way to a file nor at its end: what is outside the root is never copied, whoever
swaps what for what meanwhile (spec D-15).
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from testigo.evidence.beneath import Place

__all__ = ["copied"]


def copied(tree: Place, files: tuple[str, ...], into: Path, *, bytes_max: int) -> dict[str, str]:
    """Copy the files of a tree into a new folder, and say of those that were not copied why.

    Files beyond `bytes_max` bytes together are not copied.
    """
    into.mkdir(mode=0o700)
    left: dict[str, str] = {}
    room = bytes_max
    for name in files:
        try:
            room -= _copy(tree, name, into / name, room)
        except OSError as error:
            left[name] = f"it cannot be read: {error.strerror or error}"
    return left


def _copy(tree: Place, name: str, target: Path, room: int) -> int:
    """How many bytes the file has."""
    with os.fdopen(tree.opened(*name.split("/")), "rb") as source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        if found.st_size > room:
            raise OSError("the files of this run are too large together")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with target.open("xb") as file:
            shutil.copyfileobj(source, file)
    return found.st_size
