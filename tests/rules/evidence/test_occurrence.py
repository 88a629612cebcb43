"""Only a complete analysis says what is gone, and saying it again changes nothing: R83, R86 and R88, to the corner."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest

from testigo.rules.evidence.exemption import Exemption, ExemptionState, lapse, state
from testigo.rules.evidence.occurrence import MOVES, Presence, move

POSITIONS = (None, *Presence)
NOW = datetime(2026, 3, 1, tzinfo=UTC)

AFTER = {
    (None, True): "present appeared",
    (None, False): "None None",
    ("present", True): "present None",
    ("present", False): "absent vanished",
    ("absent", True): "returned returned",
    ("absent", False): "absent None",
    ("returned", True): "returned None",
    ("returned", False): "absent vanished",
}
"""The table of spec D-23, written a second time."""


@pytest.mark.parametrize(("before", "reported"), [*product(POSITIONS, (True, False))])
def test_a_complete_analysis_moves_it_by_the_table(before: Presence | None, reported: bool) -> None:
    """Every position and every report has one row; what vanishes takes its exemption along (spec D-23)."""
    row = move(before, looked=True, reported=reported)
    assert f"{row.after} {row.happened}" == AFTER[before, reported]
    assert row.lapses == (row.happened == "vanished")
    assert len(MOVES) == len(AFTER)


@pytest.mark.parametrize(("before", "reported"), [*product(POSITIONS, (True, False))])
def test_an_analysis_that_did_not_look_moves_nothing(before: Presence | None, reported: bool) -> None:
    """Failed, partial, or without the analyser: nothing is closed, opened or ended (field case R88)."""
    row = move(before, looked=False, reported=reported)
    assert (row.after, row.happened, row.lapses) == (before, None, False)


@pytest.mark.parametrize(("before", "reported"), [*product(POSITIONS, (True, False))])
def test_the_same_report_again_moves_nothing(before: Presence | None, reported: bool) -> None:
    """Three times the same: only the first may have an effect (field case R83)."""
    after = move(before, looked=True, reported=reported).after
    for _ in range(2):
        again = move(after, looked=True, reported=reported)
        assert (again.after, again.happened, again.lapses) == (after, None, False)


@pytest.mark.parametrize("history", [*product(("reported", "silent", "unlooked"), repeat=5)])
def test_what_is_known_is_what_the_complete_analyses_said(history: tuple[str, ...]) -> None:
    """Over every history of five analyses, it is what the last that looked says, and whether it was ever gone."""
    presence: Presence | None = None
    for what in history:
        presence = move(presence, looked=what != "unlooked", reported=what == "reported").after
    said = "".join("+" if what == "reported" else "-" for what in history if what != "unlooked").lstrip("-")
    if not said:
        assert presence is None
    elif said.endswith("-"):
        assert presence is Presence.ABSENT
    else:
        assert presence is (Presence.RETURNED if "-" in said else Presence.PRESENT)


def test_an_accepted_risk_ends_when_what_it_accepts_is_gone() -> None:
    """Still there, still accepted; gone, ended; back again, and it counts (field case R86)."""
    exemption = Exemption("known", "ada", NOW)
    presence: Presence | None = Presence.PRESENT
    told = []
    for looked, reported in ((True, True), (False, False), (True, False), (True, True)):
        row = move(presence, looked=looked, reported=reported)
        presence = row.after
        exemption = lapse(exemption, now=NOW) if row.lapses else exemption
        told.append((presence, state(exemption, NOW)))
    assert told == [
        (Presence.PRESENT, ExemptionState.ACTIVE),
        (Presence.PRESENT, ExemptionState.ACTIVE),
        (Presence.ABSENT, ExemptionState.LAPSED),
        (Presence.RETURNED, ExemptionState.LAPSED),
    ]


def test_a_complete_scan_without_findings_closes_all() -> None:
    """A project that mended everything has nothing left open (field case R88)."""
    assert all(move(before, looked=True, reported=False).after in (None, Presence.ABSENT) for before in POSITIONS)
