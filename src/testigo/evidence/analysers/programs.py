"""Programs that are run: how they are named on a command line, and what they are given beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from testigo.errors import NotFound

__all__ = ["ODD", "dotted", "environment", "installed", "module", "program", "said"]

ODD = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a report raises that its program writes otherwise than it did."""

_ISOLATED = (sys.executable, "-I", "-X", "utf8")

SAID_BYTES_MAX = 4 * 1024**2
"""What is read of what a program said; it is named by file, so more than this names more files than a part has."""


def module(name: str, *args: str) -> tuple[str, ...]:
    """The command line of a module of our own environment.

    It is isolated: neither the folder that it runs in, which is the tree, nor variables add to what it imports.
    """
    return (*_ISOLATED, "-m", name, *args)


def program(file: Path, *args: str) -> tuple[str, ...]:
    """The command line of a program that is one file of ours, isolated likewise."""
    return (*_ISOLATED, str(file), *args)


def installed(distribution: str) -> str:
    """The version of a distribution of our own environment. Raises NotFound if it is not there."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        raise NotFound(
            f"{distribution} is not installed.", remedy="Install it with the extra: pip install 'testigo[evidence]'."
        ) from None


def environment(work: Path) -> dict[str, str]:
    """Variables that keep a program's language plain and its files in the run's own folder."""
    return {
        "HOME": str(work),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TMPDIR": str(work),
        "XDG_CACHE_HOME": str(work),
        "XDG_CONFIG_HOME": str(work),
    }


def dotted(files: Iterable[str]) -> tuple[str, ...]:
    """Files of the tree as arguments, of which none can be taken for an option."""
    return tuple(f"./{file}" for file in files)


def said(by: Path) -> Iterator[str]:
    """The first 4 MiB of what a program said, line by line."""
    with by.open("rb") as file:
        yield from file.read(SAID_BYTES_MAX).decode(errors="replace").splitlines()
