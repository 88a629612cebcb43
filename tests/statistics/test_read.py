"""series and totals: what was counted, at sixty points whatever the span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.statistics import By, Durations, Measure, Point, Span, series, totals
from testigo.statistics.read import durations
from testigo.store.sql import Statement
from tests.world import World

_ADD = Statement(
    """
    INSERT INTO testigo.statistic (step_seconds, scope, at, name, measure, bucket, n)
    VALUES (:step, :scope, :at, :name, :measure, :bucket, :n)
    RETURNING 1
    """
)


def add(world: World, span: Span, ago: int, measure: Measure, n: int, **given: Any) -> None:
    """So many of a measure in the step that was so many steps ago."""
    (row,) = world.query("SELECT extract(epoch FROM now()) AS now")
    began = int(row.now) // span.step_seconds * span.step_seconds - ago * span.step_seconds
    asked = {"scope": "all", "name": "", "bucket": 0, **given}
    world.query(_ADD, step=span.step_seconds, at=datetime.fromtimestamp(began, UTC), measure=str(measure), n=n, **asked)


@pytest.mark.parametrize("span", Span)
def test_a_series_has_sixty_points_that_end_now(world: World, span: Span) -> None:
    """Each of its steps once, from the oldest, aligned; what is older is left out, what was not counted is 0."""
    for ago in (0, 59, 60):
        add(world, span, ago, Measure.SUCCEEDED, ago + 1)
    found = world.db.run(series, [Measure.SUCCEEDED, Measure.FAILED], span)
    points = found[Measure.SUCCEEDED].points
    step = timedelta(seconds=span.step_seconds)
    assert len(points) == 60
    assert {later.at - point.at for point, later in pairwise(points)} == {step}
    assert all(point.at.timestamp() % span.step_seconds == 0 for point in points)
    assert (points[0].n, points[-1].n, found[Measure.SUCCEEDED].total) == (60, 1, 61)
    assert points[-1].at <= datetime.now(UTC) + timedelta(minutes=1)
    assert [point.n for point in found[Measure.FAILED].points] == [0] * 60


def test_a_series_is_of_all_work_of_a_queue_or_of_a_kind(world: World) -> None:
    """Each is kept for itself, and nothing of a queue and a kind at once."""
    for n, (scope, name) in enumerate((("all", ""), ("queue", "a"), ("queue", "b"), ("kind", "a")), 1):
        add(world, Span.HOUR, 3, Measure.REQUESTED, n, scope=scope, name=name)
    asked: list[dict[str, str]] = [{}, {"queue": "a"}, {"queue": "b"}, {"kind": "a"}, {"kind": "b"}]
    found = [world.db.run(series, [Measure.REQUESTED], Span.HOUR, **given)[Measure.REQUESTED] for given in asked]
    assert [told.total for told in found] == [1, 2, 3, 4, 0]
    with pytest.raises(Invalid):
        world.db.run(series, [Measure.REQUESTED], Span.HOUR, queue="a", kind="a")


def test_nothing_is_told_of_what_was_not_measured(world: World) -> None:
    """No percentile of nothing, and no backlog where none was looked at: a gap is no zero."""
    found = world.db.run(series, [Measure.WAIT, Measure.BACKLOG], Span.WEEK)
    assert {point[1:] for point in found[Measure.WAIT].points} == {(0, Durations())}
    assert {point[1:] for point in found[Measure.BACKLOG].points} == {(None, None)}
    assert isinstance(found[Measure.WAIT].points[0], Point)
    assert world.db.run(totals, Span.HOUR) == ()


def test_totals_are_of_each_queue_or_kind(world: World) -> None:
    """What the page of queues shows of each: how many came and went, and how long they took."""
    for ago, n in ((0, 5), (9, 5), (60, 5)):
        add(world, Span.HOUR, ago, Measure.REQUESTED, n, scope="queue", name="b")
    add(world, Span.HOUR, 1, Measure.FAILED, 2, scope="queue", name="a")
    add(world, Span.HOUR, 1, Measure.BACKLOG, 9, scope="queue", name="c")
    for bucket, n in ((20, 90), (40, 10)):
        add(world, Span.HOUR, 2, Measure.WAIT, n, scope="queue", name="a", bucket=bucket)
    for kind in ("other", "work"):
        add(world, Span.HOUR, 2, Measure.REQUESTED, 5, scope="kind", name=kind)
    a, b = world.db.run(totals, Span.HOUR)
    assert (a.name, a.failed, a.requested, b.name, b.requested, b.run) == ("a", 2, 0, "b", 10, Durations())
    assert a.wait.p50 == pytest.approx(0.1, rel=0.13)
    assert a.wait.p95 == pytest.approx(10, rel=0.13)
    by_kind = world.db.run(totals, Span.HOUR, by=By.KIND)
    assert [(kind.name, kind.requested) for kind in by_kind] == [("other", 5), ("work", 5)]
    assert [kind.name for kind in world.db.run(totals, Span.HOUR, by=By.KIND, limit=1)] == ["other"]


def test_what_cannot_be_asked_for_is_refused(world: World) -> None:
    """By field (INVALID)."""
    unfit: list[tuple[dict[str, Any], str]] = [
        ({"measures": ["x"], "span": Span.HOUR}, "measures"),
        ({"measures": [Measure.RUN], "span": "1y"}, "span"),
        ({"measures": [Measure.RUN], "span": Span.HOUR, "queue": ""}, "queue"),
        ({"measures": [Measure.RUN], "span": Span.HOUR, "kind": "\x00"}, "kind"),
    ]
    for asked, field in unfit:
        with pytest.raises(Invalid) as refused:
            world.db.run(series, **asked)
        assert refused.value.field == field


_SECONDS = st.floats(0.001, 31_622_400)


@given(st.lists(_SECONDS, min_size=1, max_size=50))
def test_a_percentile_is_within_its_error(lasted: list[float]) -> None:
    """Of whatever was measured, within 13 % of the exact percentile (the nearest rank)."""
    ordered = sorted(lasted)
    found = durations(_buckets(ordered))
    for share, told in zip((0.5, 0.95, 0.99), found, strict=True):
        exact = next(value for n, value in enumerate(ordered, 1) if n >= len(ordered) * share)
        assert told is not None
        assert abs(told / exact - 1) < 0.13


def test_the_database_sorts_durations_as_these_tests_do(world: World) -> None:
    """Its buckets are those of the percentiles, at the edges too, and no duration is without one."""
    exact = [0.0, 0.0005, 0.001, 0.00101, 0.01, 0.5, 1.0, 59.9, 86_400.0, 31_622_400.0, 1e12]
    found = world.query(
        "SELECT testigo.bucket_of(s) AS bucket FROM unnest(CAST(:seconds AS double precision[])) AS s", seconds=exact
    )
    bounded = [min(max(seconds, 0.001), 31_622_400) for seconds in exact]
    assert [row.bucket for row in found] == [next(iter(_buckets([seconds]))) for seconds in bounded]


def _buckets(lasted: list[float]) -> dict[int, int]:
    """How many of these durations lie in each bucket, by the words of the table's comment."""
    found: dict[int, int] = {}
    for seconds in lasted:
        bucket = next(b for b in range(200) if seconds * 1000 <= 10 ** (b / 10) * (1 + 1e-12))
        found[bucket] = found.get(bucket, 0) + 1
    return found
