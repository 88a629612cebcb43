"""A job's relations as a drawing: boxes and lines with their places, for a template to write as SVG.

The job stands in the middle; left of it what it superseded, right of it what came in its place, above
it the parents it waits for, below it the children that wait for it. A row shows a few and then how many
more there are: the table beside the drawing has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from testigo.authority.actions import JobId
from testigo.authority.read import Lineage, Related
from testigo.rules.states import State

__all__ = ["BOX_HEIGHT", "BOX_WIDTH", "Box", "Drawing", "Line", "draw"]

BOX_WIDTH = 156
BOX_HEIGHT = 48
GAP = 36
ROW_GAP = 56
MARGIN = 6
SHOWN = 4
"""Boxes of one relation, before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Box:
    """One job in the drawing, at its upper left corner; or, without `job_id`, that there are `more` than are drawn.

    `is_more_at_least` says that there are more still. `role` is what it is to the job in the middle: `job`,
    `superseded`, `successors`, `parents` or `children`.
    """

    role: str
    x: int
    y: int
    job_id: JobId | None = None
    state: State | None = None
    pruned: bool = False
    more: int = 0
    is_more_at_least: bool = False

    @property
    def middle(self) -> int:
        """The place of its middle, from the left."""
        return self.x + BOX_WIDTH // 2


class Line(NamedTuple):
    """An arrow between two boxes, as the data of an SVG path; `is_open` of one whose child still waits."""

    path: str
    role: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing and its size, in pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def draw(lineage: Lineage, state: State) -> Drawing | None:
    """The drawing of a job's relations, `state` being its own; None for a job that has none."""
    top = (BOX_HEIGHT + ROW_GAP) * bool(lineage.parents)
    job = Box("job", 0, top, lineage.job_id, state)
    older = _chain(lineage, "superseded", top, -1)
    newer = _chain(lineage, "successors", top, 1)
    parents = _row(lineage, "parents", 0)
    children = _row(lineage, "children", top + BOX_HEIGHT + ROW_GAP)
    boxes = [*older, *newer, *parents, *children]
    if not boxes:
        return None
    left = min(box.x for box in [job, *boxes]) - MARGIN
    moved = [replace(box, x=box.x - left, y=box.y + MARGIN) for box in [job, *boxes]]
    width = max(box.x for box in moved) + BOX_WIDTH + MARGIN
    height = max(box.y for box in moved) + BOX_HEIGHT + MARGIN
    return Drawing(width, height, tuple(moved), tuple(_lines(moved, lineage)))


def _chain(lineage: Lineage, role: str, y: int, direction: int) -> list[Box]:
    """The boxes beside the job, the nearest first."""
    step = direction * (BOX_WIDTH + GAP)
    return [replace(box, x=step * (at + 1)) for at, box in enumerate(_boxes(lineage, role, y))]


def _row(lineage: Lineage, role: str, y: int) -> list[Box]:
    """The boxes above or below the job, their middle above or below its own."""
    boxes = _boxes(lineage, role, y)
    left = -(len(boxes) - 1) * (BOX_WIDTH + GAP) // 2
    return [replace(box, x=left + at * (BOX_WIDTH + GAP)) for at, box in enumerate(boxes)]


def _boxes(lineage: Lineage, role: str, y: int) -> list[Box]:
    related: Sequence[Related] = getattr(lineage, role)
    goes_on = role in lineage.more
    shown = related if len(related) <= SHOWN + (not goes_on) else related[:SHOWN]
    boxes = [Box(role, 0, y, each.job_id, each.state, each.pruned) for each in shown]
    if goes_on or len(shown) < len(related):
        boxes.append(Box(role, 0, y, more=len(related) - len(shown), is_more_at_least=goes_on))
    return boxes


def _lines(boxes: Sequence[Box], lineage: Lineage) -> list[Line]:
    job = boxes[0]
    waits = {(each, related.job_id) for each in ("parents", "children") for related in getattr(lineage, each)
             if related.closed is None}  # fmt: skip
    lines = []
    near = {"superseded": job, "successors": job}
    for box in boxes[1:]:
        is_open = (box.role, box.job_id) in waits
        match box.role:
            case "superseded":
                lines.append(Line(_across(box, near[box.role]), box.role, is_open))
                near[box.role] = box
            case "successors":
                lines.append(Line(_across(near[box.role], box), box.role, is_open))
                near[box.role] = box
            case "parents":
                lines.append(Line(_down(box, job), box.role, is_open))
            case _:
                lines.append(Line(_down(job, box), box.role, is_open))
    return lines


def _across(start: Box, end: Box) -> str:
    y = start.y + BOX_HEIGHT // 2
    return f"M{start.x + BOX_WIDTH} {y}H{end.x}"


def _down(start: Box, end: Box) -> str:
    low, high = start.y + BOX_HEIGHT, end.y
    half = (low + high) // 2
    return f"M{start.middle} {low}C{start.middle} {half} {end.middle} {half} {end.middle} {high}"
