"""What is counted and measured, over which spans of time, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

__all__ = ["DURATIONS", "Durations", "Measure", "Point", "Rolled", "Series", "Span", "Totals"]

POINTS = 60
"""Points of a series, whatever its span."""


class Span(StrEnum):
    """How far back a series goes; it has 60 points."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def seconds(self) -> int:
        """The whole span."""
        return {Span.HOUR: 3_600, Span.DAY: 86_400, Span.WEEK: 604_800}[self]

    @property
    def step_seconds(self) -> int:
        """What one point stands for: a minute, 24 minutes, 168 minutes."""
        return self.seconds // POINTS


class Measure(StrEnum):
    """What is told of each step of time."""

    REQUESTED = "requested"
    """Jobs that were accepted."""
    SUCCEEDED = "succeeded"
    """Jobs that succeeded, within limitations or not."""
    FAILED = "failed"
    """Jobs that failed for good."""
    RETRIED = "retried"
    """Runs that failed and are tried again."""
    LOST = "lost"
    """Runs whose holder, or process, was gone; they are tried again."""
    CANCELLED = "cancelled"
    """Jobs that were cancelled."""
    WAIT = "wait"
    """How long jobs that have succeeded or failed were ready before their last run began, in seconds."""
    RUN = "run"
    """How long each run took, whatever its end, in seconds by its holder's monotonic clock."""
    BACKLOG = "backlog"
    """The most jobs that were claimable at once, as far as samples saw; each queue is counted to 10,000. Of no kind."""


DURATIONS = frozenset({Measure.WAIT, Measure.RUN})
"""What is told by percentiles."""


class Durations(NamedTuple):
    """Percentiles in seconds, within 13 %: the middles of buckets of a tenth of a decade. None of nothing."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Point(NamedTuple):
    """One step of time that begins at `at`: how many, and of `wait` and `run` how long.

    `n` is None where nothing was sampled (of `backlog` alone: what is counted is 0 where nothing happened).
    """

    at: datetime
    n: int | None
    durations: Durations | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One measure over a span: 60 points from the oldest, of which the last is the step that has not ended."""

    measure: Measure
    span: Span
    points: tuple[Point, ...]

    @property
    def total(self) -> int:
        """All of its points together; of `backlog` the highest."""
        found = [point.n or 0 for point in self.points]
        return max(found) if self.measure is Measure.BACKLOG else sum(found)


@dataclass(frozen=True, slots=True)
class Totals:
    """One queue, or one kind, over a whole span: how many of each measure, and how long waits and runs took."""

    name: str
    requested: int
    succeeded: int
    failed: int
    retried: int
    lost: int
    cancelled: int
    wait: Durations
    run: Durations


class Rolled(NamedTuple):
    """How many events one step counted, and whether there are more that it did not come to."""

    events: int
    more: bool
