"""What a machine lacks is never passed over in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import machine

LACKING = machine.Need("needs_moon", "the moon", "which is not installed", "wait", lambda: False)
PRESENT = machine.Need("needs_earth", "the earth", "which is not installed", "look down", lambda: True)


def test_tests_with_an_unmet_need_are_deselected_and_named(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's run leaves out what the machine cannot do, and says how many tests, what for, and the remedy."""

    def item(*markers: str) -> pytest.Item:
        made: pytest.Item = pytest.Function.from_parent(request.node.parent, name="made", callobj=lambda: None)
        for marker in markers:
            made.add_marker(getattr(pytest.mark, marker))
        return made

    monkeypatch.setattr(machine, "NEEDS", (LACKING, PRESENT))
    for need in machine.NEEDS:
        request.config.addinivalue_line("markers", need.marker)
    items = [item(), item("needs_earth"), item("needs_moon"), item("needs_moon", "needs_earth")]
    free, on_earth, on_moon, on_both = items
    deselected, lines = machine.deselect_unmet(items)
    assert items == [free, on_earth]
    assert deselected == [on_moon, on_both]
    assert lines == ["deselected: 2 tests need the moon, which is not installed: wait"]


def test_a_complete_run_refuses_an_incomplete_machine() -> None:
    """With TESTIGO_CI=1 absence is a failure of the run, before any test, with what lacks by name."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TESTIGO_"))}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", __file__],
        cwd=Path(__file__).parent.parent,
        env={**environment, "TESTIGO_CI": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "TESTIGO_SHARED names its folder" in run.stderr
