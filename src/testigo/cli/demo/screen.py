"""The demo while it goes on: what happens is a line, how everything stands a table that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from testigo.demo.crew import Member
    from testigo.demo.engine import Scene

__all__ = ["Lines", "Nobody", "Screen", "clock", "scene_drawn"]

Now = TypeVar("Now")

REFRESHES_PER_SECOND = 10
BAR_CELLS = 60


def clock(seconds: float) -> str:
    """Minutes and seconds since the beginning."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Nobody(Generic[Now]):
    """An audience that is told nothing: only the end counts."""

    def shows(self, now: Now) -> None:
        """Nothing."""

    def happens(self, seconds: float, what: str) -> None:
        """Nothing."""


class Lines(Nobody[Now]):
    """An audience that reads what happens, a line each."""

    def __init__(self, out: Console) -> None:
        self._out = out

    def happens(self, seconds: float, what: str) -> None:
        """A line with its time; what kills stands out."""
        style = "bold red" if what.startswith("SIGKILL") else ""
        self._out.print(Text.assemble((f"{clock(seconds):>5}  ", "dim"), (what, style)))


class Screen(Lines[Now]):
    """An audience before a terminal: the lines go by, and below them stands the table that `draws` makes."""

    def __init__(self, out: Console, draws: Callable[[Now, int], RenderableType]) -> None:
        """`draws` is given how everything stands, and how many cells a bar may have."""
        super().__init__(out)
        self._draws = draws
        self._live = Live(console=out, transient=True, refresh_per_second=REFRESHES_PER_SECOND)

    def shows(self, now: Now) -> None:
        """Draw the table as everything stands now."""
        self._live.update(self._draws(now, max(1, min(BAR_CELLS, self._out.width - 4))))

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def scene_drawn(scene: Scene, cells: int) -> Group:
    """The workers, the database, and how many files are done."""
    now = scene.standing
    head = f"  {now.ended} of {scene.files} files done, {now.running} running, {now.lost} runs lost so far"
    bar = Padding(ProgressBar(total=scene.files, completed=now.ended, width=cells), (0, 2))
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for name in ("", "", "RUNNING", "DONE", "LOST"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for member in scene.members:
        tally = now.agents.get(member.agent)
        counts = (tally.runs, tally.ended, tally.lost) if tally else (0, 0, 0)
        table.add_row(f"worker {member.number}", _state(member), *map(str, counts))
    table.add_row("database", Text("answers", "green") if scene.database_is_up else Text("killed", "bold red"))
    return Group(Text(""), Text(head), bar, table, Text(f"  {clock(scene.seconds)}", style="dim"))


def _state(member: Member) -> Text:
    return Text("killed", "bold red") if member.is_killed else Text("alive", "green")
