"""Who watches a demo."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["Audience"]

Now = TypeVar("Now", contravariant=True)


class Audience(Protocol[Now]):
    """Who is told of a demo while it goes on; `Now` is how its work stands."""

    def shows(self, now: Now) -> None:
        """How everything stands now; called often."""

    def happens(self, seconds: float, what: str) -> None:
        """Something happened, so many seconds after the beginning."""
