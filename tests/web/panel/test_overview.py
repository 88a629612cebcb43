"""The first page tells at once what needs somebody, and teaches whoever has nothing yet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testigo.access.roles import Role
from testigo.authority.pause import Scope, pause
from testigo.authority.read.pages import Count
from testigo.authority.read.queues import QueueView
from testigo.statistics import roll_up
from testigo.statistics.model import Durations, Measure, Point, Series, Span, Totals
from testigo.web.panel.overview import figures
from testigo.web.panel.plots import whole_steps
from testigo.web.panel.standing import QueueRow
from tests.web.conftest import Site
from tests.web.panel.paper import paper
from tests.web.panel.stage import failed, plain_browser

MARKUP = "<script>alert(1)</script>\"'&"


def test_an_empty_installation_says_how_to_begin(site: Site) -> None:
    """No queue, no worker, nothing failed: each says what would be here and how it comes to be."""
    page = paper(plain_browser(site, Role.VIEWER).get("/horizon"))
    for told in ("No queue yet.", "testigo jobs submit", "Nothing has failed for good.", "testigo worker module:app"):
        assert told in page.text


def test_a_queue_without_a_worker_and_a_paused_one_are_told_first(site: Site) -> None:
    """With a way to them."""
    site.world.submit(queue="lonely")
    site.world.submit(queue="still")
    site.db.run(pause, Scope.QUEUE, "still", note="the disk is full", action=site.world.action("user:ana"))
    page = paper(plain_browser(site, Role.VIEWER).get("/horizon"))
    assert "1 job waits in lonely, and no worker takes from it." in page.text
    assert "The queue still is paused by user:ana. “the disk is full”" in page.text
    assert page.link("Open").startswith("/horizon/queues/show?name=")


@pytest.mark.parametrize("span", ["1h", "24h", "7d"])
def test_what_went_through_is_drawn_over_each_span(site: Site, span: str) -> None:
    """Five charts, each with its table; a span that there is not is the last hour."""
    worker = site.world.worker()
    site.world.submit()
    worker.succeed(worker.take())
    site.db.run(roll_up, 1_000)
    page = paper(plain_browser(site, Role.VIEWER).get(f"/horizon?span={span}"))
    tags = [given.get("class") for tag, given in page.elements if tag == "svg"]
    assert tags.count("chart") == 5
    assert page.text.count("Show as a table") == 5


def test_what_failed_is_shown_by_cause(site: Site) -> None:
    """The most frequent first, each with its page."""
    failed(site.world, 3)
    page = paper(plain_browser(site, Role.OPERATOR).get("/horizon"))
    assert page.link("HTTPError").startswith("/horizon/failed?cause=")


def test_names_full_of_markup_are_text(site: Site) -> None:
    """A queue, a worker and a note may hold anything."""
    site.world.submit(queue=MARKUP, kind=MARKUP)
    site.world.worker(agent=MARKUP, queues=(MARKUP,))
    site.db.run(pause, Scope.QUEUE, MARKUP, note=MARKUP, action=site.world.action())
    answer = plain_browser(site, Role.VIEWER).get("/horizon")
    assert MARKUP in paper(answer).text
    assert "<script>alert" not in answer.text


def test_the_minute_that_goes_on_is_not_drawn_as_a_fall() -> None:
    """Of longer spans the last step is: it says more than nothing."""
    assert whole_steps([3, None, 1], Span.HOUR) == [3.0, None, None]
    assert whole_steps([3, None, 1], Span.DAY) == [3.0, None, 1.0]


NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(name: str, *, ready: Count | None = None, requested: int = 0, succeeded: int = 0, age: float = 0.0) -> QueueRow:
    """A served queue, through which so much went in the last hour; its oldest job has waited for `age` seconds."""
    view = QueueView(name, ready or Count(0), Count(0), Count(2), None, Count(1), "default", 1, None)
    past = Totals(name, requested, succeeded, 0, 0, 0, 0, Durations(), Durations())
    return QueueRow(view, NOW - timedelta(seconds=age) if age else None, past)


def test_a_queue_is_late_when_its_oldest_job_has_waited_for_long() -> None:
    """Paused and unserved come first, for they say why."""
    assert [row("q", age=age).state(NOW) for age in (0, 299, 301)] == ["ok", "ok", "late"]


def test_how_long_a_queue_takes_to_empty_follows_from_its_last_hour() -> None:
    """Where more comes than goes it never does; of a count that stopped nothing is said."""
    shrinking = row("q", ready=Count(600), requested=600, succeeded=4_200)
    assert (shrinking.in_per_minute, shrinking.out_per_minute, shrinking.clear_seconds) == (10, 70, 600)
    assert row("q", ready=Count(600), requested=600, succeeded=600).clear_seconds is None
    assert row("q", ready=Count(10_000, more=True), succeeded=4_200).clear_seconds is None
    unknown = QueueRow(shrinking.view, None, None)
    assert (unknown.in_per_minute, unknown.out_per_minute, unknown.clear_seconds) == (None, None, None)


def test_the_first_line_is_of_the_last_hour_and_of_all_queues() -> None:
    """What is not known is not made up."""
    counts = {Measure.SUCCEEDED: (90, 6), Measure.FAILED: (20, 4), Measure.LOST: (1, 0)}
    hour = {
        measure: Series(measure, Span.HOUR, tuple(Point(NOW, n) for n in counted))
        for measure, counted in counts.items()
    }
    shown = figures([row("new", age=5), row("old", age=50)], hour)
    assert (shown.per_minute, shown.failing, shown.lost, shown.leased) == (2, 0.2, 1, Count(4))
    assert (list(shown.throughput), list(shown.failures)) == ([90, None], [20, None])
    assert shown.oldest is not None
    assert shown.oldest.view.name == "old"
    nothing = figures([], None)
    assert (nothing.per_minute, nothing.failing, nothing.lost, nothing.oldest) == (None, None, None, None)
    assert list(nothing.throughput) == []
