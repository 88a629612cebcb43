"""Charts are drawings, sentences and tables of the same numbers, whatever these are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from testigo.web.panel.charts import Chart, Curve, Value, bar, sparkline

BEGAN = datetime(2026, 11, 30, 12, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "<script>alert('x')</script>\"&"


def chart(*values: Sequence[Value], name: str = "done", whole: bool = True) -> Chart:
    """A chart of these curves, a minute from point to point."""
    moments = [BEGAN + timedelta(minutes=i) for i in range(len(values[0]))]
    curves = [Curve(f"{name} {i}", each) for i, each in enumerate(values)]

    def written(value: Value) -> str:
        return "none" if value is None else f"{value:g}"

    return Chart("c", name, f"What {name} shows", moments, curves, written, lambda at: f"{at:%H:%M}", whole)


def drawn(made: Chart) -> ET.Element:
    """The drawing, read as XML."""
    return ET.fromstring(f'<svg xmlns="{SVG[1:-1]}">{made.svg}</svg>')


def paths(made: Chart, kind: str) -> list[str]:
    """The paths of this class."""
    found = drawn(made).iter(f"{SVG}path")
    return [each.attrib["d"] for each in found if each.attrib["class"].split()[0] == kind]


def test_a_chart_has_a_title_a_description_and_a_table_of_the_same() -> None:
    """Whoever does not see the drawing is told its numbers, the latest first."""
    made = chart([1, None, 3], [4, 5, 6])
    svg = drawn(made)[0]
    assert svg.attrib["role"] == "img"
    named = {each.attrib.get("id"): each.text for each in svg}
    assert [named[name] for name in svg.attrib["aria-labelledby"].split()] == ["done", "What done shows"]
    assert made.rows == [("12:02", ["3", "6"]), ("12:01", ["none", "5"]), ("12:00", ["1", "4"])]


def test_what_is_not_known_parts_the_curve_and_a_point_alone_is_seen() -> None:
    """No line leads over a gap as if something had been measured there."""
    (curve,) = paths(chart([1, 2, None, 2, None, 1]), "curve")
    assert curve.count("M") == 3
    assert all("L" in piece for piece in curve.split("M")[1:])


def test_only_a_curve_that_is_alone_is_filled() -> None:
    """Areas over each other would hide what is below."""
    assert len(paths(chart([1, 2]), "area")) == 1
    assert paths(chart([1, 2], [2, 1]), "area") == []


@pytest.mark.parametrize(
    ("highest", "whole", "lines"),
    [
        (0, True, ["1", "2"]),
        (1, True, ["1", "2"]),
        (3, True, ["2", "4"]),
        (7, True, ["4", "8"]),
        (412, True, ["250", "500"]),
        (10_000, True, ["5000", "10000"]),
        (0.0042, False, ["0.0025", "0.005"]),
        (50, False, ["25", "50"]),
        (300, False, ["150", "300"]),
        (80_000, False, ["54000", "108000"]),
    ],
)
def test_the_grid_has_round_numbers_and_counts_have_whole_ones(highest: float, whole: bool, lines: list[str]) -> None:
    """Two lines, the upper at or above everything that is drawn."""
    svg = drawn(chart([0, highest], whole=whole))[0]
    texts = [each.text for each in svg.findall(f"{SVG}text") if each.text]
    assert texts[:2] == lines


def test_nothing_at_all_is_drawn_as_an_empty_grid() -> None:
    """A new installation has charts as well."""
    made = chart([None, None, None])
    assert made.empty
    assert paths(made, "curve") == [""]
    assert chart([0, 0]).empty
    assert not chart([0, 1]).empty


def test_names_are_text_and_never_markup() -> None:
    """A queue may be called anything."""
    svg = drawn(chart([1, 2], name=MARKUP))
    assert [each for each in svg.iter() if "script" in each.tag] == []
    assert MARKUP in "".join(svg.itertext())
    assert MARKUP in str(ET.fromstring(bar(0.5, MARKUP)).attrib["aria-label"])


def test_a_curve_stays_within_its_place() -> None:
    """Whatever the numbers, no point is above or below the plot."""
    for values in ([1e-9, 1e12], [5.0, 5.0], [0.1, 0.30000000000000004]):
        for curve in paths(chart(values, whole=False), "curve"):
            heights = [float(point.split()[1]) for point in curve.replace("M", "L").split("L")[1:]]
            assert all(0 <= height <= 150 for height in heights), values


def test_small_drawings() -> None:
    """A sparkline is hidden from whoever has the page read out, and a bar says its share."""
    spark = ET.fromstring(sparkline([1, None, 2, 0]))
    assert spark.attrib["aria-hidden"] == "true"
    assert ET.fromstring(sparkline([])) is not None
    widths = [ET.fromstring(bar(share, "told"))[1].attrib["width"] for share in (-1.0, 0.25, 7.0)]
    assert widths == ["0.0", "25.0", "100.0"]
