"""The state machine as a picture: its boxes and lines are placed by hand, its words come from the table.

Which commands stand beside a line is read from `TRANSITIONS`. A row of the table that no line shows, or a line
that shows none, stops the generator, so that the picture cannot lag behind the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import product
from textwrap import wrap

from docs.generate.layout import (
    BOXES,
    ENDS,
    HEIGHT,
    JOINS,
    LEGEND,
    LINES,
    STYLE,
    WAITS,
    WIDTH,
    Box,
    Line,
    Point,
)
from testigo.rules.states import CLAIMABLE, LEASED, TERMINAL, State
from testigo.rules.transitions import TRANSITIONS

__all__ = ["check", "diagram"]

LEADING = 16
RADIUS = 8

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
  role="img" aria-labelledby="title desc">
<!-- Generated from src/testigo/rules/transitions.py by `python -m docs.generate`. -->
<title id="title">The states of a job and the commands that move it</title>
<desc id="desc">{aloud}</desc>
<style>{style}</style>
<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
  <path class="head" d="M0 1 L10 5 L0 9 z"/>
</marker>
"""


def diagram() -> str:
    """The whole machine as an SVG document that reads itself aloud, on light paper and on dark."""
    check(LINES)
    parts = [
        *HEAD.format(width=WIDTH, height=HEIGHT, aloud=escape(_aloud()), style=STYLE).splitlines(),
        _rectangle(Box(0, 0, WIDTH, HEIGHT), "paper"),
        *(_rectangle(group, "group") for group in (WAITS, ENDS)),
        *(_arrow(line.points) for line in LINES),
        *(f'<path class="line" d="{_path(points)}"/>' for points in JOINS),
        *(text for line in LINES for text in _label(line)),
        *(part for state in State for part in _state(state)),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def check(lines: Sequence[Line]) -> None:
    """Refuses lines that do not show each edge of the table exactly once."""
    table = {(edge.source, edge.target) for edge in TRANSITIONS}
    shown = [pair for line in lines for pair in product(line.sources, line.targets)]
    if sorted(shown) != sorted(table):
        wrong = sorted(table ^ set(shown)) or sorted(pair for pair in shown if shown.count(pair) > 1)
        raise SystemExit(f"docs/generate/diagram.py does not show each edge once: {', '.join(map(' → '.join, wrong))}")


def _label(line: Line) -> list[str]:
    x, y = line.label
    return [
        f'<text class="label" x="{x}" y="{y + LEADING * at}" text-anchor="{line.anchor}">{row}</text>'
        for at, row in enumerate(wrap(_words(line), line.chars))
    ]


def _words(line: Line) -> str:
    """The commands of a line; what only some of its sources know is said of them by name."""
    walks = {source: _commands(source, line.targets) for source in line.sources}
    shared = [command for command in walks[line.sources[0]] if all(command in own for own in walks.values())]
    extra = {source: [command for command in own if command not in shared] for source, own in walks.items()}
    return "; ".join(
        [", ".join(shared), *(f"{source} also by {', '.join(own)}" for source, own in extra.items() if own)]
    )


def _commands(source: State, targets: Sequence[State]) -> list[str]:
    found = [str(edge.command) for edge in TRANSITIONS if edge.source is source and edge.target in targets]
    return list(dict.fromkeys(found))


def _kind(state: State) -> str:
    if state in CLAIMABLE:
        return "claimable"
    if state in LEASED:
        return "owned"
    return "ended" if state in TERMINAL else "waits"


def _state(state: State) -> list[str]:
    box = BOXES[state]
    x, y = box.x + box.width // 2, box.y + box.height // 2 + 5
    return [
        _rectangle(box, f"box {_kind(state)}"),
        f'<text class="state" x="{x}" y="{y}" text-anchor="middle">{state}</text>',
    ]


def _legend() -> list[str]:
    parts = []
    for at, (kind, words) in enumerate(LEGEND):
        y = 24 + 23 * at
        parts.append(_rectangle(Box(444, y, 26, 16), f"box {kind}"))
        parts.append(f'<text x="480" y="{y + 13}">{words}</text>')
    return parts


def _rectangle(box: Box, style: str) -> str:
    return f'<rect class="{style}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8"/>'


def _arrow(points: Sequence[Point]) -> str:
    return f'<path class="line" d="{_path(points)}" marker-end="url(#head)"/>'


def _path(points: Sequence[Point]) -> str:
    """The way through these points, with its corners rounded."""
    steps = [f"M{points[0][0]} {points[0][1]}"]
    for (fx, fy), (x, y), (tx, ty) in zip(points, points[1:], points[2:], strict=False):
        steps.append(f"L{x - RADIUS * _sign(x - fx)} {y - RADIUS * _sign(y - fy)}")
        steps.append(f"Q{x} {y} {x + RADIUS * _sign(tx - x)} {y + RADIUS * _sign(ty - y)}")
    steps.append(f"L{points[-1][0]} {points[-1][1]}")
    return " ".join(steps)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _aloud() -> str:
    return "; ".join(f"{edge.command}: {edge.source} to {edge.target}" for edge in TRANSITIONS) + "."
