"""Projects: whose source is analysed, how their findings went over time, their gate and their exemptions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response

from testigo.access.roles import Right
from testigo.authority.read import Cursor
from testigo.evidence.exemptions import exemptions
from testigo.evidence.listing import analyses
from testigo.evidence.model import AnalysisView
from testigo.evidence.projects import project, projects
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.settings import LIMITS
from testigo.web.door import AtDoor
from testigo.web.panel.charts import Chart, Curve, Value
from testigo.web.panel.gates import told_policy
from testigo.web.panel.pages import pen, render, words
from testigo.web.panel.words import Words
from testigo.web.panel.written import Written
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/projects", in_schema=False)

SHOWN = 50
"""Projects, or exemptions, of one page."""

TREND = 60
"""Analyses over which the charts go, the newest."""

_TONES = {Severity.CRITICAL: "tone-bad", Severity.HIGH: "tone-warn", Severity.MEDIUM: "", Severity.LOW: "tone-quiet"}

Name = Annotated[str, Query(max_length=LIMITS.name_chars_max)]


@routes.get("", Right.READ)
async def every(request: Request, door: AtDoor, who: Caller, after: str | None = None) -> Response:
    """All projects, by name."""
    found = await door.read(projects, after=None if after is None else Cursor(after), limit=SHOWN)
    return render(
        request, "projects.html", title="Projects", who=who, topics=["analyses"], found=found, severities=SEVERITIES
    )


@routes.get("/show", Right.READ)
async def show(request: Request, door: AtDoor, who: Caller, name: Name, after: str | None = None) -> Response:
    """One project: its findings over its analyses, its gate, and the risks that it takes."""
    cursor = None if after is None else Cursor(after)
    view, past, risks = await asyncio.gather(
        door.read(project, name),
        door.read(analyses, project=name, limit=TREND),
        door.read(exemptions, name, after=cursor, limit=SHOWN),
    )
    published = [each for each in reversed(past.items) if each.persisted and each.scope is None]
    return render(
        request,
        "project.html",
        title=view.name,
        who=who,
        topics=["analyses"],
        view=view,
        told=told_policy(view.policy, words(request)),
        past=past.items[:10],
        charts=charts(published, words(request), pen(request)) if len(published) > 1 else [],
        risks=risks,
        severities=SEVERITIES,
        result=request.query_params.get("said"),
    )


def charts(past: Sequence[AnalysisView], t: Words, pen: Written) -> list[Chart]:
    """What was found, and what of it stands open, over these analyses from the oldest."""

    def clock(at: datetime) -> str:
        return f"{pen.here(at):%m-%d %H:%M}"

    def count(value: Value) -> str:
        return pen.number(value)

    def drawn(name: str, title: str, values: Sequence[dict[Severity, int]]) -> Chart:
        curves = [
            Curve(t(str(severity)), [float(each[severity]) for each in values], tone)
            for severity, tone in _TONES.items()
        ]
        told = " ".join(
            t("{name}: from {first} to {last}.", name=curve.name, first=count(curve.values[0]),
              last=count(curve.values[-1]))
            for curve in curves
        )  # fmt: skip
        return Chart(f"chart-{name}", title, told, [each.began_at for each in past], curves, count, clock, whole=True)

    return [
        drawn("found", t("Findings"), [dict(each.counts) for each in past]),
        drawn("counting", t("To be reviewed"), [dict(each.counting) for each in past]),
    ]
