"""Statistics: what was counted and measured, over a span of time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from testigo.access.roles import Right
from testigo.statistics import By, Measure, Span, series, totals
from testigo.web.api import examples
from testigo.web.api.paging import LimitField
from testigo.web.api.shapes import Moment, Shape
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("/statistics", tags=["statistics"])


class DurationsShape(Shape):
    """Percentiles in seconds, within 13 %; null where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


class PointShape(Shape):
    """One step of time that begins at `at`."""

    at: Moment
    n: int | None
    """How many; null where nothing was sampled."""
    durations: DurationsShape | None
    """How long, of wait and run."""


class SeriesShape(Shape):
    """One measure over the span that ends now: 60 points from the oldest, of which the last step has not ended."""

    measure: Measure
    span: Span
    points: tuple[PointShape, ...]
    total: int
    """All points together; of backlog the highest."""


class TotalsShape(Shape):
    """One queue, or one kind, over a whole span."""

    name: str
    requested: int
    succeeded: int
    failed: int
    retried: int
    lost: int
    cancelled: int
    wait: DurationsShape
    run: DurationsShape


class AllTotals(Shape):
    """Queues or kinds by name."""

    items: tuple[TotalsShape, ...]


class SeriesQuery(Shape):
    """Of what, and how far back."""

    span: Span = Span.HOUR
    """How far back."""
    queue: str | None = None
    """Of this queue."""
    kind: str | None = None
    """Of this kind."""


class TotalsQuery(Shape):
    """Of what, and how far back."""

    span: Span = Span.HOUR
    """How far back."""
    by: By = By.QUEUE
    """Of what each total is."""
    limit: LimitField = 1_000
    """How many at most."""


@routes.get("", Right.READ, **told("list_totals", "Sum up a span of time", shows={"items": [examples.TOTALS]}))
async def list_totals(asked: Annotated[TotalsQuery, Query()], door: AtDoor) -> AllTotals:
    """Tell of each queue, or of each kind, what happened in the span that ends now."""
    found = await door.read(totals, asked.span, by=asked.by, limit=asked.limit)
    return AllTotals(items=tuple(map(TotalsShape.model_validate, found)))


@routes.get("/{measure}", Right.READ, **told("get_series", "Read a measure over time", shows=examples.SERIES))
async def get_series(
    measure: Annotated[Measure, Path(description="What was counted or measured.")],
    asked: Annotated[SeriesQuery, Query()],
    door: AtDoor,
) -> SeriesShape:
    """Tell how a measure went over the span that ends now: of all work, of a queue, or of a kind."""
    found = await door.read(series, [measure], asked.span, queue=asked.queue, kind=asked.kind)
    return SeriesShape.model_validate(found[measure])
