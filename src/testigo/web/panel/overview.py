"""The first page: whether anything needs somebody, how much goes through, and where it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import HTMLResponse

from testigo.authority.read.failed import causes
from testigo.authority.read.pages import Count
from testigo.authority.read.sessions import SessionState, sessions
from testigo.statistics.model import Measure, Series, Span
from testigo.statistics.read import series
from testigo.web.door import AtDoor
from testigo.web.panel.attempts import attempt
from testigo.web.panel.charts import Value
from testigo.web.panel.pages import pen, render, words
from testigo.web.panel.plots import MEASURES, charts, span_of, whole_steps
from testigo.web.panel.standing import QueueRow, queue_rows
from testigo.web.who import Caller

__all__ = ["Figures", "figures", "overview"]

_QUEUES = 20
_CAUSES = 5
_WORKERS = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """The five numbers of the first line, with what each was over the last hour; None where it is not known."""

    per_minute: float | None
    throughput: Sequence[Value]
    failing: float | None
    failures: Sequence[Value]
    lost: int | None
    oldest: QueueRow | None
    leased: Count


async def overview(request: Request, door: AtDoor, who: Caller) -> HTMLResponse:
    """The page. What takes too long to read is left out, and said to be."""
    span = span_of(request)
    page, hour, found, failures, live = await asyncio.gather(
        queue_rows(door, limit=_QUEUES),
        attempt(door, series, (Measure.SUCCEEDED, Measure.FAILED, Measure.LOST), Span.HOUR),
        attempt(door, series, MEASURES, span),
        attempt(door, causes, limit=_CAUSES),
        attempt(door, sessions, state=SessionState.OPEN, limit=_WORKERS),
    )
    rows = page.items if page else ()
    return render(
        request,
        "overview.html",
        title="Overview",
        who=who,
        topics=("jobs", "pauses", "workers"),
        queues=page,
        figures=figures(rows, hour),
        span=span,
        charts=[] if found is None else charts(found, words(request), pen(request)),
        failures=failures,
        workers=live,
    )


def figures(rows: Sequence[QueueRow], hour: Mapping[Measure, Series] | None) -> Figures:
    """The first line, of these queues and of what was counted in the last hour."""
    waiting = [(row.oldest_at, row) for row in rows if row.oldest_at is not None]
    held = [row.view.leased for row in rows]
    known = hour or {}
    done, failed = (_counts(known.get(measure)) for measure in (Measure.SUCCEEDED, Measure.FAILED))
    ended = sum(n or 0 for n in (*done, *failed))
    return Figures(
        per_minute=ended / (Span.HOUR.seconds / 60) if done else None,
        throughput=whole_steps(done, Span.HOUR),
        failing=sum(n or 0 for n in failed) / ended if ended else None,
        failures=whole_steps(failed, Span.HOUR),
        lost=known[Measure.LOST].total if known else None,
        oldest=min(waiting, key=lambda each: each[0])[1] if waiting else None,
        leased=Count(sum(count.n for count in held), any(count.more for count in held)),
    )


def _counts(found: Series | None) -> list[int | None]:
    return [] if found is None else [point.n for point in found.points]
