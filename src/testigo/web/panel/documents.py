"""Payloads, checkpoints and outputs as a page shows them: every token as it is kept (river #593, spec P-06)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from testigo.authority.read import JobView

__all__ = ["INLINE_BYTES_MAX", "NAMES", "Shown", "indented", "shown"]

INLINE_BYTES_MAX = 64 * 1024
"""A larger document is shown only to whoever asks for it."""

NAMES = ("payload", "checkpoint", "output")

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s"{}\[\],:]+')
_INDENTS_MAX = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """One document of a job. `text` is None where it is not shown: because it is large, or to a role that may not."""

    name: str
    bytes: int
    text: str | None


def shown(view: JobView, *, asked: str | None) -> tuple[Shown, ...]:
    """The documents that a job has, hidden where `view` has none; one that is `asked` for is shown however large."""
    found = []
    for name in NAMES:
        size = getattr(view, f"{name}_bytes")
        if size is None:
            continue
        kept = getattr(view.documents, name) if view.documents else None
        large = size > INLINE_BYTES_MAX
        text = None if kept is None or (large and asked != name) else kept if large else indented(kept)
        found.append(Shown(name, size, text))
    return tuple(found)


def indented(document: str) -> str:
    """JSON text with a line for each member, and every token as it was: no number is read, no string rewritten."""
    parts: list[str] = []
    depth, before = 0, ""
    for part in _TOKEN.findall(document):
        if part in ("}", "]"):
            depth -= 1
            parts.append(part if before in ("{", "[") else _line(depth) + part)
        else:
            if before in ("{", "[", ","):
                parts.append(_line(depth))
            parts.append(": " if part == ":" else part)
            depth += part in ("{", "[")
        before = part
    return "".join(parts)


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _INDENTS_MAX)
