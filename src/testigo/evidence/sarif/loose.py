"""Values of a report, taken for what they are, or for nothing where they are something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["child", "items", "text", "whole"]

_NOTHING: Mapping[str, Any] = {}


def child(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object of that name; an empty one where there is none."""
    found = parent.get(name)
    return found if isinstance(found, dict) else _NOTHING


def items(found: object) -> Sequence[Any]:
    """The elements of an array; none of anything else."""
    return found if isinstance(found, list) else ()


def text(found: object) -> str | None:
    """A text that is not blank."""
    return found if isinstance(found, str) and found.strip() else None


def whole(found: object) -> int | None:
    """A whole number, also one written as 3.0; no bool."""
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
