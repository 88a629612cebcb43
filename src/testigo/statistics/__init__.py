"""What happened, rolled up from the events by time, queue and kind: it survives restarts, and its jobs.

`roll_up` counts each event once, in whichever process and however often it is called; `series` and `totals`
tell what was counted, at the same cost for any span.
"""

from __future__ import annotations

from testigo.statistics.model import DURATIONS, Durations, Measure, Point, Rolled, Series, Span, Totals
from testigo.statistics.read import By, series, totals
from testigo.statistics.roll_up import roll_up

__all__ = [
    "DURATIONS",
    "By",
    "Durations",
    "Measure",
    "Point",
    "Rolled",
    "Series",
    "Span",
    "Totals",
    "roll_up",
    "series",
    "totals",
]
