"""What can be paused (spec P-14)."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Scope"]


class Scope(StrEnum):
    """What can be paused."""

    QUEUE = "queue"
    KIND = "kind"
