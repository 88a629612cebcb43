"""What every prune answers, and the bounds of what it is asked."""

from __future__ import annotations

from typing import NamedTuple

from testigo.rules import fields
from testigo.settings import LIMITS

__all__ = ["Pruned", "check"]


class Pruned(NamedTuple):
    """How many rows one transaction removed, and whether another one, sent at once, would go on."""

    pruned: int
    more: bool


def check(older_than_days: int, limit: int) -> None:
    """Refuse a retention, or a batch, that is no number of days or rows in bounds."""
    fields.whole(older_than_days, field="older_than_days", low=0, high=LIMITS.days_max)
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
