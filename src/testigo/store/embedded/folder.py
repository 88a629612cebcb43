"""The directory that the user names: found or made, ours, and not open to others' writing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from testigo.errors import EmbeddedUnusable

__all__ = ["take_folder", "unusable_folder"]


def take_folder(directory: Path) -> Path:
    """The real path of the directory, made with mode 0700 if it is not there.

    What we make tells git to leave it alone, for keys lie in it. What was there keeps its mode and
    owner; EmbeddedUnusable if it is no directory, somebody else's, or open to everybody's writing.
    """
    try:
        real = directory.resolve()
        if not real.exists():
            real.parent.mkdir(parents=True, exist_ok=True)
            _make(real)
        found = real.stat()
        if not real.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(real))
    except ValueError as error:
        raise EmbeddedUnusable(f"{str(directory)!r} names no directory: {error}.", remedy="Name another.") from error
    except OSError as error:
        raise unusable_folder(directory, error) from error
    if found.st_uid != os.geteuid():
        raise EmbeddedUnusable(
            f"{real} belongs to uid {found.st_uid}, and this process runs as uid {os.geteuid()}.",
            remedy="Run as its owner, or name a directory of your own.",
        )
    if found.st_mode & 0o002:
        raise EmbeddedUnusable(
            f"Everybody may write into {real}, and so exchange the data in it.",
            remedy="Name a directory that is yours alone, for example a new one inside it.",
        )
    return real


def unusable_folder(directory: Path, error: OSError) -> EmbeddedUnusable:
    """The error for a directory that the system does not let us use."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            remedy = "Free space on that disk and try again."
        case errno.ENOTDIR | errno.EEXIST:
            remedy = "Name a directory; a file is in the way."
        case _:
            remedy = "Name a directory that this process may write into."
    return EmbeddedUnusable(f"{directory} cannot be used: {error}.", remedy=remedy)


def _make(real: Path) -> None:
    try:
        real.mkdir(mode=0o700)
    except FileExistsError:
        return
    (real / ".gitignore").write_text("*\n")
