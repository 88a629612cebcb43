"""What a scan says while it goes on, where it is no terminal that draws it (issue 6)."""

from __future__ import annotations

import pytest
from rich.console import Console

from testigo.cli.scan.screen import drawn, watched
from testigo.rules.states import State
from testigo.scan.standing import Standing, Tally

WAITING = Standing({"ruff": Tally(2, 0, 0, 7, 0)}, State.INPUTS_PENDING, "testigo")
GOING = Standing({"ruff": Tally(2, 1, 1, 7, 3)}, State.INPUTS_PENDING)
LEFT = Standing({"ruff": Tally(2, 0, 2, 7, 7)}, State.SUCCEEDED, "testigo")
HINT = ["No worker serves the queue testigo. Start one:", "  testigo worker testigo.scan.jobs:app"]


def said(capsys: pytest.CaptureFixture[str], *, quiet: bool = False, served: bool) -> list[str]:
    """The lines about a scan that waits, goes on, waits again, and has ended."""
    with watched(quiet=quiet, served=served) as shows:
        for now in (WAITING, WAITING, GOING, WAITING, LEFT):
            shows(now)
    written = capsys.readouterr()
    assert written.out == ""
    return written.err.splitlines()


def test_a_scan_that_others_serve_says_once_that_nobody_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own crew comes without asking, and a program reads the answer alone."""
    assert said(capsys, served=True) == [*HINT, "ruff has looked at 7 files"]
    assert said(capsys, served=False) == ["ruff has looked at 7 files"]
    assert said(capsys, served=True, quiet=True) == []


def test_a_terminal_shows_it_for_as_long_as_it_is_so() -> None:
    """Below what goes on."""

    def shown(now: Standing, *, served: bool) -> bool:
        console = Console(width=80)
        with console.capture() as text:
            console.print(drawn(now, 3.0, served=served))
        return [line.rstrip() for line in text.get().splitlines()[-2:]] == HINT

    told = [shown(now, served=True) for now in (WAITING, GOING, LEFT)]
    assert (told, shown(WAITING, served=False)) == ([True, False, False], False)
