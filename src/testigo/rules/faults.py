"""Where a value is not JSON that can be kept exactly: the first fault and its path.

Two rules read values from outside: documents (kept as text, any integer) and identities (hashed as
RFC 8785, integers within 2^53-1). Both refuse by path, and this is the walk that finds it (spec P-06).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from testigo.settings import LIMITS

__all__ = ["SAFE_INTEGER_MAX", "Duplicated", "Fault", "find"]

SAFE_INTEGER_MAX = 2**53 - 1
"""The largest integer that every JSON reader reads exactly (RFC 8785)."""

_UNFIT = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong and where: `path` is relative to the value, such as `.items[3].name`."""

    problem: str
    limit: str | None = None
    path: str = ""


class Duplicated(dict[str, Any]):
    """An object of foreign JSON text in which a key occurs twice; `key` is the first such key."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)


def find(value: object, *, safe_integers: bool = False, depth: int = 0) -> Fault | None:
    """The first fault of `value` in its own order, or None; with `safe_integers` also integers beyond 2^53-1."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, dict | list | tuple):
        if depth == LIMITS.json_depth_max:
            return Fault("it is nested too deep, or holds itself", limit=f"{LIMITS.json_depth_max} levels")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return _of_items(value, items, safe_integers, depth)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        if safe_integers and abs(value) > SAFE_INTEGER_MAX:
            return Fault(
                "an integer beyond 2^53-1 is not the same number for every reader: write it as a string",
                limit=f"-{SAFE_INTEGER_MAX} to {SAFE_INTEGER_MAX}",
            )
        return None
    if isinstance(value, float):
        return None if isfinite(value) else Fault(f"{value!r} is not a number that JSON has")
    return Fault(f"a value of type {type(value).__name__} is not JSON")


def _of_items(value: object, items: Any, safe_integers: bool, depth: int) -> Fault | None:
    named = isinstance(value, dict)
    if isinstance(value, Duplicated):
        return Fault("a key occurs twice in one object", path=_step(value.key))
    for key, item in items:
        if named and not isinstance(key, str):
            return Fault(f"a key is of type {type(key).__name__}; keys are strings")
        fault = (_of_text(key) if named else None) or find(item, safe_integers=safe_integers, depth=depth + 1)
        if fault is not None:
            return replace(fault, path=(_step(key) if named else f"[{key}]") + fault.path)
    return None


def _of_text(text: str) -> Fault | None:
    found = _UNFIT.search(text)
    if found is None:
        return None
    what = "NUL" if found[0] == "\x00" else f"lone surrogate U+{ord(found[0]):04X}"
    return Fault(f"text holds a {what} at {found.start()}")


def _step(key: str) -> str:
    """One step of a path, printable and short whatever the key is."""
    if key.isidentifier() and len(key) <= 64:
        return f".{key}"
    return f"[{json.dumps(key if len(key) <= 64 else key[:63] + '…')}]"
