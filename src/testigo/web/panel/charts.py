"""Charts, drawn on the server as SVG: with a title, a description in words, and the same numbers as a table (panel.md).

A chart is as wide as its place and needs no script. Curves keep their width however the chart is stretched,
and words are not stretched with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

__all__ = ["Chart", "Curve", "Value", "bar", "sparkline"]

_WIDTH = 1000
_HEIGHT = 150
_TOP = 16
"""Above the highest line, for its number."""
_BELOW = 22
"""Below the lowest, for the times."""

_FRAME = Markup(
    '<svg class="chart" width="100%" height="{height}" role="img" aria-labelledby="{id}-title {id}-desc">'
    '<title id="{id}-title">{title}</title><desc id="{id}-desc">{told}</desc>{grid}'
    '<svg x="0" y="{top}" width="100%" height="{plot}" viewBox="0 0 {width} {plot}" preserveAspectRatio="none"'
    ' aria-hidden="true">{curves}{points}</svg>{times}</svg>'
)
_LINE = Markup('<line class="{kind}" x1="0" x2="100%" y1="{y}" y2="{y}"/><text x="0" y="{text}">{value}</text>')
_TIME = Markup('<text x="{x}%" y="{y}" text-anchor="{anchor}">{time}</text>')
_AREA = Markup('<path class="area {tone}" d="{path}"/>')
_CURVE = Markup('<path class="curve {tone}" d="{path}"/>')
_POINT = Markup(
    '<rect class="point" x="{x:.1f}" y="0" width="{width:.1f}" height="{height}"><title>{told}</title></rect>'
)
_SPARK = Markup(
    '<svg class="spark {tone}" viewBox="0 0 100 26" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'
)
_BAR = Markup(
    '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{told}">'
    '<rect class="whole" width="100" height="8" rx="2"/>'
    '<rect class="part {late}" width="{part:.1f}" height="8" rx="2"/></svg>'
)
_KEY = Markup('<svg viewBox="0 0 22 8" aria-hidden="true"><path class="curve {tone}" d="M0 4h22"/></svg>{name}')

Value = float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart: a value for each moment, None where nothing is known. `tone` is a class of the style."""

    name: str
    values: Sequence[Value]
    tone: str = ""

    @property
    def key(self) -> Markup:
        """Its line and its name, for the legend."""
        return _KEY.format(tone=self.tone, name=self.name)


@dataclass(frozen=True, slots=True)
class Chart:
    """Some curves over the same moments.

    `id` is its own on the page, `told` says in words what it shows, `written` writes a value and `clock` a
    moment. With `whole` values are counts, and no line of the grid is between two of them; else they are seconds.
    """

    id: str
    title: str
    told: str
    moments: Sequence[datetime]
    curves: Sequence[Curve]
    written: Callable[[Value], str]
    clock: Callable[[datetime], str]
    whole: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for curve in self.curves for value in curve.values)

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The same as a table: for each moment, the latest first, the value of each curve."""
        return [
            (self.clock(at), [self.written(curve.values[i]) for curve in self.curves])
            for i, at in reversed(list(enumerate(self.moments)))
        ]

    @property
    def svg(self) -> Markup:
        """The drawing."""
        highest = max((value for curve in self.curves for value in curve.values if value is not None), default=0)
        top = _even(highest) if self.whole else _nice_seconds(highest)
        return _FRAME.format(
            id=self.id,
            title=self.title,
            told=self.told,
            height=_TOP + _HEIGHT + _BELOW,
            top=_TOP,
            plot=_HEIGHT,
            width=_WIDTH,
            grid=_joined(self._line(top, share) for share in (0.0, 0.5, 1.0)),
            curves=_joined(self._drawn(curve, top) for curve in self.curves),
            points=_joined(self._point(i) for i in range(len(self.moments))),
            times=self._times(),
        )

    def _line(self, top: float, share: float) -> Markup:
        y = _TOP + _HEIGHT * (1 - share)
        value = self.written(top * share) if share else ""
        return _LINE.format(kind="grid" if share else "axis", y=y, text=y - 4, value=value)

    def _drawn(self, curve: Curve, top: float) -> Markup:
        pieces = _pieces(curve.values, top, _WIDTH, _HEIGHT)
        drawn = _CURVE.format(tone=curve.tone, path=_open(pieces))
        return drawn if len(self.curves) > 1 else _AREA.format(tone=curve.tone, path=_closed(pieces, _HEIGHT)) + drawn

    def _point(self, i: int) -> Markup:
        """What a pointer that rests there is told."""
        width = _WIDTH / len(self.moments)
        values = "\n".join(f"{curve.name}: {self.written(curve.values[i])}" for curve in self.curves)
        return _POINT.format(x=i * width, width=width, height=_HEIGHT, told=f"{self.clock(self.moments[i])}\n{values}")

    def _times(self) -> Markup:
        places = ((0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end"))
        last = len(self.moments) - 1
        return _joined(
            _TIME.format(
                x=round(share * 100),
                y=_TOP + _HEIGHT + 16,
                anchor=anchor,
                time=self.clock(self.moments[round(share * last)]),
            )
            for share, anchor in places
            if last > 0
        )


def sparkline(values: Sequence[Value], tone: str = "") -> Markup:
    """A chart of the size of a word, without numbers: the number beside it says how things stand."""
    top = max((value for value in values if value is not None), default=0) or 1
    pieces = [[(x, y + 2) for x, y in piece] for piece in _pieces(values, top, 100, 22)]
    paths = Markup('<path class="area" d="{}"/><path d="{}"/>').format(_closed(pieces, 26), _open(pieces))
    return _SPARK.format(tone=tone, paths=paths)


def bar(part: float, told: str, *, late: bool = False) -> Markup:
    """How much of a whole is used, as a share of one; `told` says it in words."""
    return _BAR.format(told=told, part=max(0.0, min(1.0, part)) * 100, late="late" if late else "")


def _even(highest: float) -> float:
    """The round and even number at or above this one, at least 2: half of it is a whole number."""
    return math.ceil(_nice(max(highest, 2)) / 2) * 2.0


def _nice_seconds(highest: float) -> float:
    """The round number of seconds, minutes or hours at or above this one."""
    unit = next(unit for unit in (3_600, 60, 1) if highest >= unit or unit == 1)
    return _nice(highest / unit) * unit


def _nice(highest: float) -> float:
    """The round number at or above this one, of which half is round as well; 1 for nothing."""
    if highest <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(highest))
    return float(next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= highest * 0.999))


def _pieces(values: Sequence[Value], top: float, width: float, height: float) -> list[list[tuple[float, float]]]:
    """The points of the curve, parted where nothing is known."""
    pieces: list[list[tuple[float, float]]] = [[]]
    step = width / max(1, len(values) - 1)
    for i, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((i * step, height - height * min(value, top) / top))
    return [piece for piece in pieces if piece]


def _open(pieces: list[list[tuple[float, float]]]) -> str:
    """The curve. A point that stands alone is drawn as a short stroke, or it would not be seen."""
    return "".join(_path(piece if len(piece) > 1 else _stroke(*piece[0])) for piece in pieces)


def _stroke(x: float, y: float) -> list[tuple[float, float]]:
    return [(x - 5, y), (x + 5, y)]


def _closed(pieces: list[list[tuple[float, float]]], floor: float) -> str:
    """What is under the curve."""
    return "".join(f"{_path([(piece[0][0], floor), *piece, (piece[-1][0], floor)])}Z" for piece in pieces)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _joined(drawn: Iterable[Markup]) -> Markup:
    return Markup("").join(drawn)
