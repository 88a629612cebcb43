"""Where a server looks: wherever its account may, or only below the folders that it was given (`--root`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from testigo.errors import Invalid
from testigo.evidence.transport.request import Request

__all__ = ["Place", "place_of"]

_READ = "file"
_RUN = "environment"


class Place(NamedTuple):
    """A tree: the folder `below` the folder `base`, which nobody who asks has chosen."""

    base: Path
    below: tuple[str, ...] = ()


def place_of(request: Request, roots: Sequence[Path]) -> Place:
    """Where the tree of a request is, by what lies there and not by the links that lead there.

    Raises `Invalid` by field for a tree, or a report that an option names, that is below none of the roots, and for an
    environment whose Python would be run: it could read anything.
    """
    if not roots:
        return Place(Path(request.root))
    if _RUN in request.options:
        raise _refused(f"options.{_RUN}", roots)
    if _READ in request.options:
        _below(request.options[_READ], roots, f"options.{_READ}")
    return _below(request.root, roots, "root")


def _below(path: str, roots: Sequence[Path], field: str) -> Place:
    real = Path(os.path.realpath(path))
    for root in map(Path.resolve, roots):
        if real.is_relative_to(root):
            return Place(root, real.relative_to(root).parts)
    raise _refused(field, roots)


def _refused(field: str, roots: Sequence[Path]) -> Invalid:
    return Invalid(
        "The server does not look there.",
        field=field,
        limit=f"below {', '.join(map(str, roots))}",
        remedy="Name what lies there, or start the server with another --root.",
    )
