"""Lists and facts for people. On a terminal a list fits its width; into a pipe everything is written in full."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from testigo.rules.text import tidy

__all__ = ["Column", "console", "fit", "print_facts", "print_hanging", "print_table", "styled"]

T = TypeVar("T")

_GAP = 2
_WIDE = 100
"""From this width on, a table shows its wide columns."""
_LEAST = 4
"""Cells to which a column may be cut."""

_STYLES = {
    "succeeded": "green",
    "succeeded_degraded": "yellow",
    "permanent_failure": "red",
    "running": "cyan",
    "leased": "cyan",
    "cancelling": "yellow",
    "retry_waiting": "yellow",
    "blocked_by_quality": "yellow",
    "cancelled": "dim",
    "superseded": "dim",
    "open": "green",
    "draining": "yellow",
    "dead": "red",
    "paused": "yellow",
    "passed": "green",
    "complete": "green",
    "failed": "red",
    "incomplete": "yellow",
    "critical": "red",
    "high": "red",
    "medium": "yellow",
    "fault": "red",
    "warning": "yellow",
    "error": "red",
}


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column: its name, what it shows of a row, and how it gives way.

    One that is `whole` is never cut, a `wide` one is left out of a narrow terminal.
    """

    name: str
    of: Callable[[T], str]
    whole: bool = False
    wide: bool = False
    right: bool = False


class Terminal(Console):
    """A console whose reader may go away: that is one end of the command, told as any other."""

    def on_broken_pipe(self) -> None:
        """Raise what the stream has raised."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """The terminal, if it is one: plain where NO_COLOR or its kind says so."""
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Terminal(stderr=stderr, color_system=system, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_table(columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    """A table with a head: as wide as the terminal at most, its cells cut with … where they must be."""
    out = console()
    width = out.width if out.is_terminal else None
    shown = [each for each in columns if not each.wide or width is None or width >= _WIDE]
    cells = [[fit(each.of(row)) for each in shown] for row in rows]
    widths = _widths(shown, cells, width)
    out.print(_line([each.name.upper() for each in shown], shown, widths, style="bold"))
    for row in cells:
        out.print(_line(row, shown, widths))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Named values, one below the other; what has no value is left out."""
    told = [(name, fit(value, lines=True)) for name, value in facts if value]
    indent = max((len(name) for name, _ in told), default=0) + _GAP
    out = console()
    for name, value in told:
        first, *others = value.splitlines() or [""]
        out.print(Text.assemble((name.ljust(indent), "bold"), styled(first)))
        for line in others:
            out.print(Text(" " * indent + line))


def print_hanging(label: str, text: str) -> None:
    """A sentence after its label; on a terminal its further lines begin below its first word."""
    out = console()
    told = fit(text)
    if out.is_terminal:
        room = max(_LEAST, out.width - len(label))
        told = f"\n{' ' * len(label)}".join(textwrap.wrap(told, room, break_on_hyphens=False))
    out.print(f"{label}{told}")


def fit(text: str, *, lines: bool = False) -> str:
    """Text that no terminal obeys, on one line unless it may have several."""
    safe = tidy(text, bytes_max=sys.maxsize)
    return safe if lines else " ".join(safe.split("\n"))


def styled(word: str) -> Text:
    """A word in its colour, if it has one."""
    return Text(word, style=_STYLES.get(word, ""))


def _widths(columns: Sequence[Column[T]], cells: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """How wide each column is: the widest that may be cut gives way first."""
    widths = [max([len(column.name), *(cell_len(row[at]) for row in cells)]) for at, column in enumerate(columns)]
    if width is None:
        return widths
    over = sum(widths) + _GAP * (len(widths) - 1) - width
    while over > 0:
        cuttable = [at for at, column in enumerate(columns) if not column.whole and widths[at] > _LEAST]
        if not cuttable:
            break
        widths[max(cuttable, key=lambda at: widths[at])] -= 1
        over -= 1
    return widths


def _line(cells: Sequence[str], columns: Sequence[Column[T]], widths: Sequence[int], style: str = "") -> Text:
    line = Text(style=style)
    for at, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        padded = _cut(cell, width)
        gap = " " * (width - cell_len(padded))
        line.append(" " * _GAP if at else "")
        line.append(gap if column.right else "")
        line.append_text(Text(padded, style=_STYLES.get(cell, "")))
        line.append("" if column.right else gap)
    line.rstrip()
    return line


def _cut(cell: str, width: int) -> str:
    return cell if cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…"
