"""Where the boxes and lines of the state machine are, and how they look; every place is chosen by hand."""

from __future__ import annotations

from dataclasses import dataclass

from testigo.rules.states import WAITING, State

__all__ = ["BOXES", "ENDS", "HEIGHT", "JOINS", "LEGEND", "LINES", "STYLE", "WAITS", "WIDTH", "Box", "Line", "Point"]

S = State
Point = tuple[int, int]

WIDTH, HEIGHT = 940, 654
LEADING = 16


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, by its left upper corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """An arrow for every edge from one of `sources` to one of `targets`.

    Its words begin, end or are centred at `label`, in rows of at most `chars` characters.
    """

    sources: tuple[State, ...]
    targets: tuple[State, ...]
    points: tuple[Point, ...]
    label: Point
    anchor: str = "middle"
    chars: int = 60


BOXES = {
    S.CREATED: Box(124, 62, 176, 40),
    S.INPUTS_PENDING: Box(124, 140, 176, 40),
    S.READY: Box(124, 222, 176, 40),
    S.BLOCKED_BY_QUALITY: Box(124, 346, 176, 40),
    S.CHECKPOINTED: Box(124, 418, 176, 40),
    S.RETRY_WAITING: Box(124, 500, 176, 40),
    S.SUPERSEDED: Box(124, 586, 176, 40),
    S.LEASED: Box(444, 222, 130, 40),
    S.RUNNING: Box(444, 334, 130, 136),
    S.CANCELLING: Box(718, 222, 176, 40),
    S.SUCCEEDED: Box(718, 346, 176, 40),
    S.SUCCEEDED_DEGRADED: Box(718, 418, 176, 40),
    S.PERMANENT_FAILURE: Box(718, 500, 176, 40),
    S.CANCELLED: Box(718, 586, 176, 40),
}

WAITS = Box(110, 34, 204, 520)
ENDS = Box(704, 332, 204, 308)

LINES = (
    # waiting
    Line((S.CREATED,), (S.INPUTS_PENDING,), ((212, 102), (212, 140)), (220, 126), "start"),
    Line((S.CREATED,), (S.READY,), ((124, 82), (84, 82), (84, 234), (124, 234)), (76, 150), "end", 8),
    Line((S.INPUTS_PENDING,), (S.READY,), ((212, 180), (212, 222)), (220, 206), "start"),
    Line((S.RETRY_WAITING,), (S.READY,), ((124, 520), (84, 520), (84, 250), (124, 250)), (76, 300), "end"),
    Line((S.BLOCKED_BY_QUALITY,), (S.READY,), ((212, 346), (212, 262)), (220, 309), "start"),
    Line((S.CHECKPOINTED,), (S.RETRY_WAITING,), ((212, 458), (212, 500)), (220, 484), "start"),
    # owned
    Line((S.READY,), (S.LEASED,), ((300, 234), (444, 234)), (372, 228)),
    Line((S.LEASED,), (S.READY,), ((444, 250), (300, 250)), (372, 267)),
    Line((S.LEASED,), (S.RUNNING,), ((509, 262), (509, 334)), (501, 296), "end"),
    Line((S.CHECKPOINTED,), (S.RUNNING,), ((300, 446), (444, 446)), (372, 463)),
    Line((S.RUNNING,), (S.CHECKPOINTED,), ((444, 430), (300, 430)), (372, 424)),
    Line((S.RUNNING,), (S.BLOCKED_BY_QUALITY,), ((444, 366), (300, 366)), (372, 360)),
    Line((S.RUNNING,), (S.RETRY_WAITING,), ((476, 470), (476, 512), (300, 512)), (386, 506)),
    # asked to stop
    Line((S.LEASED,), (S.CANCELLING,), ((574, 242), (718, 242)), (646, 236)),
    Line((S.RUNNING,), (S.CANCELLING,), ((550, 334), (550, 286), (736, 286), (736, 262)), (646, 280)),
    # ended
    Line((S.RUNNING,), (S.SUCCEEDED,), ((574, 366), (718, 366)), (639, 360)),
    Line((S.RUNNING,), (S.SUCCEEDED_DEGRADED,), ((574, 438), (718, 438)), (639, 432)),
    Line((S.RUNNING,), (S.PERMANENT_FAILURE,), ((542, 470), (542, 512), (718, 512)), (622, 506)),
    Line((S.RETRY_WAITING,), (S.PERMANENT_FAILURE,), ((300, 528), (718, 528)), (509, 545)),
    Line(
        (S.INPUTS_PENDING,),
        (S.PERMANENT_FAILURE,),
        ((300, 160), (924, 160), (924, 520), (894, 520)),
        (372, 154),
    ),
    Line(
        (S.CANCELLING,),
        (S.SUCCEEDED, S.SUCCEEDED_DEGRADED, S.PERMANENT_FAILURE, S.CANCELLED),
        ((758, 262), (758, 332)),
        (766, 283),
        "start",
        19,
    ),
    Line(tuple(sorted(WAITING)), (S.CANCELLED,), ((314, 546), (338, 546), (338, 606), (718, 606)), (509, 600)),
    Line(
        (S.READY, S.BLOCKED_BY_QUALITY),
        (S.SUPERSEDED,),
        ((124, 242), (16, 242), (16, 606), (124, 606)),
        (24, 600),
        "start",
    ),
)

JOINS: tuple[tuple[Point, ...], ...] = (((124, 366), (16, 366)),)
"""Lines without an arrowhead that run into another one: from blocked_by_quality to superseded."""

LEGEND = (
    ("waits", "waits for its time, its parents or somebody"),
    ("claimable", "waits, and may be claimed now"),
    ("owned", "owned: holds a lease"),
    ("ended", "ended, and never changes again"),
    ("group", "a frame: its arrow is that of any state in it"),
)

STYLE = """
    .paper { fill: #ffffff; stroke: #d0d7de; }
    .group { fill: none; stroke: #8c959f; stroke-dasharray: 5 4; }
    .box { stroke-width: 1.5; }
    .waits { fill: #eef1f4; stroke: #6e7781; }
    .claimable { fill: #dff1ef; stroke: #00796b; }
    .owned { fill: #fff1d6; stroke: #9a6700; }
    .ended { fill: #e9e5f5; stroke: #6639ba; }
    .line { fill: none; stroke: #57606a; stroke-width: 1.5; }
    .head { fill: #57606a; }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #424a53; }
    .label { paint-order: stroke; stroke: #ffffff; stroke-width: 4; stroke-linejoin: round; }
    .state { font: 600 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .state { fill: #1f2328; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #161b22; stroke: #30363d; }
      .group { stroke: #6e7681; }
      .waits { fill: #262c36; stroke: #8b949e; }
      .claimable { fill: #0f3a36; stroke: #3cc7b7; }
      .owned { fill: #3d2e0a; stroke: #d29922; }
      .ended { fill: #2b2150; stroke: #a98bf5; }
      .line { stroke: #9da7b3; }
      .head { fill: #9da7b3; }
      text { fill: #c3cad2; }
      .label { stroke: #161b22; }
      .state { fill: #f0f3f6; }
    }
"""
