"""How long a run will take yet, as far as its own word goes."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

__all__ = ["Mark", "eta_seconds"]


class Mark(NamedTuple):
    """How much a run had done at a time, in its own unit."""

    done: float
    at: datetime


def eta_seconds(first: Mark, last: Mark, total: float | None) -> float | None:
    """How many seconds after `last` a run will have done `total`, if it goes on as it did since `first`.

    `first` is what this run told first: what an earlier run had done, from whose checkpoint it went on, says
    nothing of its speed. None where the total is not known, or nothing was done between the two.
    """
    if total is None:
        return None
    if last.done >= total:
        return 0.0
    done, seconds = last.done - first.done, (last.at - first.at).total_seconds()
    if done <= 0 or seconds <= 0:
        return None
    return (total - last.done) * seconds / done
