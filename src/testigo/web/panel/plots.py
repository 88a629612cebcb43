"""The panel's charts of what was counted and measured: which there are, and what each says (panel.md *Overview*)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from fastapi import Request

from testigo.statistics.model import Measure, Point, Series, Span
from testigo.web.panel.charts import Chart, Curve, Value
from testigo.web.panel.words import Words
from testigo.web.panel.written import Written

__all__ = ["MEASURES", "charts", "span_of", "whole_steps"]

MEASURES = (
    Measure.REQUESTED,
    Measure.SUCCEEDED,
    Measure.FAILED,
    Measure.RETRIED,
    Measure.LOST,
    Measure.BACKLOG,
    Measure.WAIT,
    Measure.RUN,
)
"""What the charts are drawn from."""


def span_of(request: Request) -> Span:
    """The span that the page's address asks for with `span`; the last hour where it asks for none that there is."""
    asked = request.query_params.get("span")
    return Span(asked) if asked in list(Span) else Span.HOUR


def charts(found: Mapping[Measure, Series], t: Words, pen: Written) -> list[Chart]:
    """Throughput, failures, backlog, and percentiles of waits and runs."""
    span = next(iter(found.values())).span
    moments = [point.at for point in found[Measure.SUCCEEDED].points]

    def clock(at: datetime) -> str:
        here = pen.here(at)
        return f"{here:%H:%M}" if span is not Span.WEEK else f"{here:%m-%d %H:%M}"

    def count(value: Value) -> str:
        return pen.number(value)

    def counted(measure: Measure) -> list[Value]:
        return whole_steps([point.n for point in found[measure].points], span)

    backlog = [None if point.n is None else float(point.n) for point in found[Measure.BACKLOG].points]

    def drawn(name: str, title: str, curves: Sequence[Curve], *, durations: bool = False) -> Chart:
        written = pen.span if durations else count
        told = " ".join(_told(curve, written, t) for curve in curves)
        return Chart(f"chart-{name}", title, told, moments, curves, written, clock, whole=not durations)

    return [
        drawn(
            "throughput",
            t("Throughput"),
            [
                Curve(t("succeeded"), counted(Measure.SUCCEEDED)),
                Curve(t("requested"), counted(Measure.REQUESTED), "tone-quiet"),
            ],
        ),
        drawn(
            "failures",
            t("Failures"),
            [
                Curve(t("final"), counted(Measure.FAILED), "tone-bad"),
                Curve(t("retried"), counted(Measure.RETRIED), "tone-warn"),
                Curve(t("lost"), counted(Measure.LOST), "tone-quiet"),
            ],
        ),
        drawn("backlog", t("Backlog"), [Curve(t("ready"), backlog)]),
        drawn("wait", t("Wait"), _percentiles(found[Measure.WAIT].points), durations=True),
        drawn("run", t("Run time"), _percentiles(found[Measure.RUN].points), durations=True),
    ]


def whole_steps(counts: Sequence[int | None], span: Span) -> list[Value]:
    """What was counted in each step; of the last hour without the minute that goes on, which would look like a fall."""
    known = [None if count is None else float(count) for count in counts]
    return [*known[:-1], None] if known and span is Span.HOUR else known


def _percentiles(points: Sequence[Point]) -> list[Curve]:
    known = [point.durations for point in points]
    return [
        Curve("p50", [each.p50 if each else None for each in known]),
        Curve("p95", [each.p95 if each else None for each in known], "tone-warn"),
        Curve("p99", [each.p99 if each else None for each in known], "tone-quiet"),
    ]


def _told(curve: Curve, written: Callable[[Value], str], t: Words) -> str:
    """The curve in words, for whoever does not see it."""
    known = [value for value in curve.values if value is not None]
    if not known:
        return t("{name}: nothing was measured.", name=curve.name)
    facts = {"low": written(min(known)), "high": written(max(known)), "last": written(known[-1])}
    return t("{name}: from {low} to {high}, {last} in the end.", name=curve.name, **facts)
