"""Which files of a tree a scan looks at: those that git knows, else all that a walk meets; no link is followed."""

from __future__ import annotations

import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from testigo.errors import Invalid
from testigo.rules.evidence.paths import why_not_canonical
from testigo.settings import EVIDENCE

__all__ = ["Scope", "absolute", "scope"]

GIT_SECONDS = 60.0
BINARY_BYTES = 8 * 1024
"""A file with a NUL among its first bytes is no text, as git has it."""
FILES_MAX = 500_000

_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".testigo", "__pycache__", "node_modules"})
"""Folders that hold no source of the tree, where there is no git to say so."""
_VIRTUAL = "pyvenv.cfg"
# A repository's own settings can name programs; none of them is run for a listing.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")


@dataclass(frozen=True, slots=True)
class Scope:
    """The files of `root` that are looked at, canonical paths in order with their bytes; and how many are not, by why.

    `left_out` counts by: link, binary, gone (it is not there any more), repository (another one within, such as a
    submodule), special (a pipe and the like). What is there and cannot be read, or has a name
    that is no canonical path, is a part of the scope all the same, the latter under a name that is escaped: an analyser
    that takes it fails on it, so that its silence is no evidence. `only` is the part of
    the root that this is, a file or a folder with a slash at its end; None for all of it.
    """

    root: Path
    files: Mapping[str, int]
    left_out: Mapping[str, int]
    by_git: bool
    only: str | None = None


def scope(path: Path, *, within: Path | None = None) -> Scope:
    """The scope of a folder, or of the one file that `path` is. Raises `Invalid` if it is neither, or has too many.

    Where it lies below `within`, it is a part of that: its files are named from there. A file alone is a part of its
    folder.
    """
    top = absolute(path)
    is_file = top.is_file()
    if not is_file and not top.is_dir():
        raise Invalid(f"{str(path)!r} is no folder and no file.", field="path")
    root = within if within is not None and within in top.parents else top.parent if is_file else top
    below = "" if root == top else top.relative_to(root).as_posix()
    if is_file:
        return _looked_at(root, [below], by_git=False, only=below)
    listed = _by_git(top)
    names = _walked(top) if listed is None else iter(listed)
    if not below:
        return _looked_at(root, names, by_git=listed is not None)
    return _looked_at(root, (f"{below}/{name}" for name in names), by_git=listed is not None, only=f"{below}/")


def absolute(path: Path) -> Path:
    """The path as it is kept; a link on the way to the tree is the caller's own."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _looked_at(root: Path, names: Iterable[str], *, by_git: bool, only: str | None = None) -> Scope:
    files: dict[str, int] = {}
    left: Counter[str] = Counter()
    odd: list[tuple[str, int]] = []
    for name in names:
        if len(files) == FILES_MAX:
            raise Invalid(f"There are too many files under {root}.", field="path", limit=f"{FILES_MAX} files")
        why, size = _examined(root / name)
        if why:
            left[why] += 1
        elif size is not None and why_not_canonical(name):
            odd.append((name, size))
        elif size is not None:
            files[name] = size
    for name, size in odd:
        files[_escaped(name, files)] = size
    return Scope(root, dict(sorted(files.items())), dict(sorted(left.items())), by_git, only)


def _escaped(name: str, taken: Mapping[str, int]) -> str:
    """A canonical path under which nothing else is in scope, and nothing is in the tree, for a file that has none."""
    whole = quote(os.fsencode(name), safe="/")
    escaped = whole if len(whole) <= EVIDENCE.path_bytes_max else f"%{whole[-EVIDENCE.path_bytes_max // 2 :]}"
    while escaped in taken:
        escaped = f"%{escaped}"
    return escaped


def _examined(path: Path) -> tuple[str, int | None]:
    """Why a file is left out, or its size."""
    size = 0
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return "link", None
        if not stat.S_ISREG(found.st_mode):
            return "repository" if stat.S_ISDIR(found.st_mode) else "special", None
        size = found.st_size
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return ("binary", None) if b"\0" in file.read(BINARY_BYTES) else ("", size)
    except (FileNotFoundError, NotADirectoryError):
        return "gone", None
    except OSError:
        return "", size


def _by_git(root: Path) -> list[str] | None:
    """What git lists below the folder; None where it is no part of a repository, or there is no git."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(root), *_LIST], capture_output=True, env=environment, timeout=GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _walked(root: Path) -> Iterator[str]:
    for folder, names, files in os.walk(root, onerror=_refused):
        below = Path(folder)
        names[:] = sorted(name for name in names if name not in _LEFT_OUT and not (below / name / _VIRTUAL).exists())
        for name in files:
            yield (below / name).relative_to(root).as_posix()


def _refused(error: OSError) -> None:
    """A folder that cannot be read may hold anything: nobody could say which files were not looked at."""
    raise Invalid(
        f"The folder {error.filename!r} cannot be read: {error.strerror}.",
        field="path",
        remedy="Scan as somebody who may read it, or scan what lies beside it.",
    ) from error
