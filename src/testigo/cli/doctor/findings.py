"""What the doctor finds: what it is, why it matters, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Finding", "Level", "counted"]


class Level(StrEnum):
    """How bad it is; the first two make the doctor's exit status 1."""

    FAULT = "fault"
    """Something does not work, or work could be lost."""
    WARNING = "warning"
    """It works, and will not go on so, or not as well as it could."""
    NOTE = "note"
    """Good to know; nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: a code for programs, three sentences for people, and the facts behind them."""

    code: str
    level: Level
    what: str
    why: str
    remedy: str
    facts: Mapping[str, object] = field(default_factory=dict)


def counted(n: int, one: str, many: str) -> str:
    """A number of things in words."""
    return f"{n:,} {one if n == 1 else many}"
