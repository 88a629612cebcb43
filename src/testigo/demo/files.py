"""Which files the demo looks at."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from testigo.errors import Invalid

__all__ = ["python_files", "standard_library"]

_NO_LIBRARY = frozenset({"idlelib", "lib2to3", "site-packages", "dist-packages", "test", "tests", "turtledemo"})
"""Folders of the standard library that hold tests, programs, or what was installed besides."""


def standard_library(count: int) -> list[Path]:
    """Files of the running interpreter's standard library, at most `count`: the same at each call."""
    root = Path(sysconfig.get_path("stdlib"))
    return _spread(sorted(_below(root, _NO_LIBRARY)), count)


def python_files(path: Path, count: int) -> list[Path]:
    """The Python files under a folder, or the one that `path` is: at most `count`, spread over them.

    Hidden folders are left out, and so is a name that is no UTF-8. Raises `Invalid` where there is none.
    """
    path = path.absolute()
    found = [path] if path.is_file() else sorted(_below(path, frozenset()))
    if not found:
        raise Invalid(f"There is no Python file under {path}.", field="path", remedy="Name a folder with *.py files.")
    return _spread(found, count)


def _below(root: Path, left_out: frozenset[str]) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in left_out and not name.startswith((".", "__", "config-"))]
        for name in files:
            if name.endswith(".py") and _is_utf8(os.path.join(folder, name)):  # noqa: PTH118
                yield Path(folder, name)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spread(files: list[Path], count: int) -> list[Path]:
    """At most `count` of them, at even distances."""
    if len(files) <= count:
        return files
    return [files[at * len(files) // count] for at in range(count)]
