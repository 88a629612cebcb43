"""What a project knows of one fingerprint over its analyses: there, gone, or back again, as a table.

Only an analysis that is complete moves it, and only where the same analyser looked: no finding of a failed or
partial scan, and none of an analyser that was not asked, means anything is gone (spec D-23; field cases R86, R88).
The same analysis again moves nothing, for every row leads to one that stays (field case R83).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["MOVES", "Move", "Presence", "move"]


class Presence(StrEnum):
    """What the last complete analysis that looked for it says."""

    PRESENT = "present"
    """It is there, and was never gone since it was first seen."""
    ABSENT = "absent"
    """It is gone: whatever counted it counts it no more."""
    RETURNED = "returned"
    """It is there, and was gone before."""


@dataclass(frozen=True, slots=True)
class Move:
    """One row: what was known, whether the analysis reports it, and what is known then.

    `happened` is what its history records, None for what stays; `lapses` says that an exemption ends with it.
    """

    before: Presence | None
    reported: bool
    after: Presence | None
    happened: str | None = None
    lapses: bool = False


MOVES: tuple[Move, ...] = (
    Move(None, True, Presence.PRESENT, "appeared"),
    Move(None, False, None),
    Move(Presence.PRESENT, True, Presence.PRESENT),
    Move(Presence.PRESENT, False, Presence.ABSENT, "vanished", lapses=True),
    Move(Presence.ABSENT, True, Presence.RETURNED, "returned"),
    Move(Presence.ABSENT, False, Presence.ABSENT),
    Move(Presence.RETURNED, True, Presence.RETURNED),
    Move(Presence.RETURNED, False, Presence.ABSENT, "vanished", lapses=True),
)

_BY_POSITION = {(row.before, row.reported): row for row in MOVES}


def move(before: Presence | None, *, looked: bool, reported: bool) -> Move:
    """The row that an analysis walks; `looked` where it is complete and the same analyser was a part of it.

    Without having looked, an analysis leaves everything as it was, whatever it reports.
    """
    return _BY_POSITION[before, reported] if looked else Move(before, reported, before)
