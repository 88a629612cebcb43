"""What was counted over a span of time: sixty points, whatever the span (panel.md *Overview*, *Queues*)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.statistics.model import DURATIONS, POINTS, Durations, Measure, Point, Series, Span, Totals
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["By", "series", "totals"]


class By(StrEnum):
    """What totals are of."""

    QUEUE = "queue"
    KIND = "kind"


# The first row says what time it is, where nothing was counted too.
_SERIES = Statement(
    """
    WITH span AS (
        SELECT to_timestamp((floor(extract(epoch FROM now()) / :step) - :points + 1) * :step) AS began
    )
    SELECT s.began, w.measure, w.at, w.bucket, w.n
    FROM span s
         LEFT JOIN LATERAL (
             SELECT t.measure, t.at, t.bucket, t.n
             FROM testigo.statistic t
             WHERE t.step_seconds = :step AND t.scope = :scope AND t.at >= s.began AND t.name = :name
               AND t.measure = ANY (CAST(:measures AS text[]))
         ) AS w ON true
    """
)

_TOTALS = Statement(
    """
    SELECT t.name, t.measure, t.bucket, CAST(sum(t.n) AS bigint) AS n
    FROM testigo.statistic t
    WHERE t.step_seconds = :step AND t.scope = :scope AND t.measure <> 'backlog'
      AND t.at >= to_timestamp((floor(extract(epoch FROM now()) / :step) - :points + 1) * :step)
    GROUP BY 1, 2, 3
    """
)


@single_statement
def series(
    c: Connection,
    measures: Sequence[Measure],
    span: Span,
    *,
    queue: str | None = None,
    kind: str | None = None,
) -> Mapping[Measure, Series]:
    """These measures over the span that ends now: of all work, of a queue, or of a kind.

    Of a kind there is no backlog. Raises `Invalid` for what cannot be, and for a queue and a kind at once: what
    happened is kept of each, and not of both together.
    """
    wanted = [fields.member(measure, Measure, field="measures") for measure in measures]
    step = fields.member(span, Span, field="span").step_seconds
    scope, name = _scope(queue, kind)
    asked = {"measures": [str(measure) for measure in wanted], "scope": scope, "name": name}
    rows = _SERIES.rows(c, **asked, step=step, points=POINTS)
    found: dict[tuple[str, datetime], Counter[int]] = {}
    for row in rows:
        if row.measure is not None:
            found.setdefault((row.measure, row.at), Counter())[row.bucket] += row.n
    times = [rows[0].began + n * timedelta(seconds=step) for n in range(POINTS)]
    return {
        measure: Series(measure, span, tuple(_point(measure, at, found.get((measure, at))) for at in times))
        for measure in wanted
    }


@single_statement
def totals(c: Connection, span: Span, *, by: By = By.QUEUE, limit: int = LIMITS.page_max) -> tuple[Totals, ...]:
    """What happened in the span that ends now, by queue or by kind, in the order of their names: at most `limit`."""
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
    fields.member(by, By, field="by")
    step = fields.member(span, Span, field="span").step_seconds
    rows = _TOTALS.rows(c, scope=str(by), step=step, points=POINTS)
    found: dict[str, dict[str, Counter[int]]] = {}
    for row in rows:
        found.setdefault(row.name, {}).setdefault(row.measure, Counter())[row.bucket] += row.n
    return tuple(_totals(name, found[name]) for name in sorted(found)[:limit])


def _scope(queue: str | None, kind: str | None) -> tuple[str, str]:
    if queue is not None and kind is not None:
        raise Invalid("what happened is not kept of a queue and a kind at once", field="kind", limit="one of them")
    if queue is not None:
        return "queue", fields.name(queue, field="queue")
    if kind is not None:
        return "kind", fields.name(kind, field="kind")
    return "all", ""


def _point(measure: Measure, at: datetime, found: Counter[int] | None) -> Point:
    if found is None:
        nothing = None if measure is Measure.BACKLOG else 0
        return Point(at, nothing, Durations() if measure in DURATIONS else None)
    return Point(at, found.total(), durations(found) if measure in DURATIONS else None)


def _totals(name: str, found: Mapping[str, Counter[int]]) -> Totals:
    none: Counter[int] = Counter()
    counts = {str(measure): found.get(measure, none).total() for measure in Measure if measure in _COUNTED}
    lasted = {str(measure): durations(found.get(measure, none)) for measure in DURATIONS}
    return Totals(name, **counts, wait=lasted[Measure.WAIT], run=lasted[Measure.RUN])


_COUNTED = frozenset(Measure) - DURATIONS - {Measure.BACKLOG}


def durations(found: Mapping[int, int]) -> Durations:
    """The percentiles of what lies in these buckets, each at the middle of its bucket on a scale of decades."""
    total = sum(found.values())
    if not total:
        return Durations()
    return Durations(*(_percentile(found, total * share) for share in (0.5, 0.95, 0.99)))


def _percentile(found: Mapping[int, int], rank: float) -> float:
    seen, bucket = 0, 0
    for bucket in sorted(found):
        seen += found[bucket]
        if seen >= rank:
            break
    return float(10 ** ((bucket - 0.5) / 10) / 1000) if bucket else 0.001
