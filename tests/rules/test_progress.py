"""How long a run will take yet: its own speed since it told first, and nothing where it told too little."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testigo.rules.progress import Mark, eta_seconds

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def after(seconds: float, done: float) -> Mark:
    """What was done so many seconds after noon."""
    return Mark(done, NOON + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("first", "last", "total", "eta"),
    [
        (after(0, 0), after(10, 25), 100, 30.0),
        (after(0, 900), after(10, 950), 1000, 10.0),
        (after(0, 0), after(10, 100), 100, 0.0),
        (after(0, 0), after(10, 120), 100, 0.0),
        (after(0, 100), after(0, 100), 100, 0.0),
        (after(0, 0), after(10, 25), None, None),
        (after(0, 0), after(0, 0), 100, None),
        (after(0, 5), after(10, 5), 100, None),
        (after(0, 50), after(10, 20), 100, None),
        (after(10, 0), after(5, 50), 100, None),
        (after(0, 0), after(10, 0), 0, 0.0),
    ],
)
def test_a_run_goes_on_as_it_did_since_it_told_first(
    first: Mark, last: Mark, total: float | None, eta: float | None
) -> None:
    """What an earlier run had done counts for nothing, and a clock that was set back, or work that was undone,
    gives no date (issue *progress with ETA*)."""
    assert eta_seconds(first, last, total) == eta
