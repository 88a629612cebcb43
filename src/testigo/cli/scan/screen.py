"""A scan while it goes on: on a terminal a table that is drawn again and again, elsewhere a line for each step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testigo.cli.tables import console

if TYPE_CHECKING:
    from testigo.scan.standing import Standing

__all__ = ["drawn", "watched"]

REFRESHES_PER_SECOND = 8
BAR_CELLS = 30

Shows = Callable[["Standing"], object]


@contextmanager
def watched(*, quiet: bool, served: bool = False) -> Iterator[Shows]:
    """What is called with how the scan stands; it writes to stderr, so that the answer alone is on stdout.

    Of one for which others serve it says when nobody does: it would wait without a word.
    """
    out = console(stderr=True)
    if quiet:
        yield lambda now: None
    elif out.is_terminal:
        began_at = time.monotonic()
        with Live(console=out, transient=True, refresh_per_second=REFRESHES_PER_SECOND) as live:
            yield lambda now: live.update(drawn(now, time.monotonic() - began_at, served=served))
    else:
        yield _Lines(out, served=served).shows


class _Lines:
    """Says once of each analyser that it is done, and once that nobody serves."""

    def __init__(self, out: Console, *, served: bool) -> None:
        self._out = out
        self._served = served
        self._said: set[str] = set()

    def shows(self, now: Standing) -> None:
        """Say what is new."""
        if self._served and (waits := _waits(now)):
            self._served = False
            self._out.print(Text(waits))
        for name, tally in now.analysers.items():
            if tally.ended == tally.parts and name not in self._said:
                self._said.add(name)
                self._out.print(Text(f"{name} has looked at {_files(tally.files)}"))


def drawn(now: Standing, seconds: float, *, served: bool = False) -> Group:
    """A bar for each analyser, and what goes on; of a scan that others serve, too, that nobody does."""
    table = Table(box=None, padding=(0, 2), show_header=False)
    for name, tally in now.analysers.items():
        bar = ProgressBar(total=max(1, tally.parts), completed=tally.ended, width=BAR_CELLS)
        table.add_row(name, bar, f"{tally.files_ended:,} of {_files(tally.files)}", f"{tally.running} running")
    ended = all(tally.ended == tally.parts for tally in now.analysers.values())
    said = f"publishing: {now.publish}" if ended else "analysing"
    waits = _waits(now) if served else ""
    return Group(table, Text(f"  {int(seconds)} s, {said}", style="dim"), *([Text(waits)] if waits else []))


def _waits(now: Standing) -> str:
    """What to do where nobody serves; empty where somebody does, or nothing is left to do."""
    if now.ended or now.unserved is None:
        return ""
    return f"No worker serves the queue {now.unserved}. Start one:\n  testigo worker testigo.scan.jobs:app"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
