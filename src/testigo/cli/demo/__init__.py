"""`testigo demo`: real work under real kills, watched live and counted afterwards."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from testigo.cli import call
from testigo.cli.call import Call, command, refusals_told
from testigo.cli.demo.place import Place, placed
from testigo.cli.failures import Misuse
from testigo.settings import LIMITS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from testigo.cli.demo.screen import Nobody
    from testigo.demo.audience import Audience
    from testigo.demo.engine import Played, Scene
    from testigo.scan.standing import Standing
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("demo", "")

FILES = 400
FILES_SCANNED = 60

Now = TypeVar("Now")


@command(group, "demo", "demo", "demo --stay", "demo engine", "demo --path src --jobs 100", "demo --data demo-data")
def demo(
    here: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which demo: scan or engine.")] = "scan",
    path: Annotated[
        Path | None,
        typer.Option(
            "--path",
            metavar="PATH",
            exists=True,
            help="Look at the Python files under this.",
            show_default="Python's own library",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            max=LIMITS.batch_max,
            help="Look at so many files at most.",
            show_default=f"{FILES_SCANNED}, of the engine {FILES}",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            file_okay=False,
            help="Make the database there, and keep it.",
            show_default="a temporary one",
        ),
    ] = None,
    stay: Annotated[bool, typer.Option("--stay", help="Keep the panel open on what was done, until Ctrl-C.")] = False,
) -> None:
    """See real work survive real kills, in less than a minute.

    Real analysers look at Python files, in jobs side by side, and the process that publishes what they found is killed
    with SIGKILL when it has inserted everything. Another one publishes. In the end the findings, what the gate says,
    and what the database alone says of it are shown. Exit status 0 if there is one analysis, whole, else 1.

    With `engine` each of some hundred files is a job that several workers look at: its tokens, its digest, what ruff
    says of it. Meanwhile a runner, a whole worker and the database server are killed. Exit status 0 if nothing was
    lost, nothing counted twice and no event is missing, else 1.

    It runs on an embedded database of its own, whatever TESTIGO_URL says. With --url it runs on that one, in the
    schema testigo_demo; a server that is not embedded is not killed. With --stay it goes on: three more jobs fail,
    for a reason that has gone when the panel opens on what was done, where they can be found and retried.
    """
    from testigo.demo.files import python_files, standard_library

    if name not in ("engine", "scan"):
        raise Misuse(f"There is no demo {name!r}: there are `scan` and `engine`.")
    if data is not None and here.url is not None:
        raise Misuse("Choose one of --data and --url.")
    count = jobs or (FILES if name == "engine" else FILES_SCANNED)
    files = standard_library(count) if path is None else python_files(path, count)
    with placed(here, data, stay=stay) as place:
        holds = (
            _engine(here, place, files, stay=stay) if name == "engine" else _scan(here, place, files, path, stay=stay)
        )
    if not holds:
        raise typer.Exit(1)


def _scan(here: Call, place: Place, files: list[Path], path: Path | None, *, stay: bool) -> bool:
    from testigo.cli.demo.further import called
    from testigo.cli.demo.scanned import answer, tell
    from testigo.cli.scan.screen import drawn
    from testigo.demo.scan import LIBRARY, copied, play
    from testigo.scan.plan import project_of
    from testigo.store.database import Database

    began_at = time.monotonic()

    def draws(now: Standing, _cells: int) -> RenderableType:
        return drawn(now, time.monotonic() - began_at)

    with Database(place.url, schema=place.schema) as database:
        with (
            tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch,
            _watched(here, draws) as audience,
        ):
            audience.happens(0.0, _begins(database))
            with refusals_told():
                database.migrate()
            tree = copied(files, Path(scratch, "tree"))
            project = LIBRARY if path is None else project_of(path.absolute())
            scanned = play(database, project, tree, audience, began_at=began_at)
        here.answer(answer(scanned, place), lambda: tell(scanned, place, called(), stays=stay))
        if stay:
            _stay(here, place, f"demo-{scanned.detail.view.id[-8:]}")
    return scanned.holds


def _engine(here: Call, place: Place, files: list[Path], *, stay: bool) -> bool:
    from testigo.cli.demo.further import called
    from testigo.cli.demo.screen import scene_drawn
    from testigo.cli.demo.words import answer, tell

    with _watched(here, scene_drawn) as audience:
        played = _play(place, files, audience)
    here.answer(answer(played, place), lambda: tell(played, place, called(), stays=stay))
    if stay:
        _stay(here, place, played.queue)
    return played.proof.holds


def _play(place: Place, files: list[Path], audience: Audience[Scene]) -> Played:
    from testigo.demo.crew import Crew
    from testigo.demo.engine import Engine
    from testigo.store.database import Database

    began_at = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch,
        Database(place.url, schema=place.schema) as database,
    ):
        audience.happens(0.0, _begins(database))
        with refusals_told():
            database.migrate()
        crew = partial(Crew, place.url, place.schema, scratch=Path(scratch))
        return Engine(database, crew, audience, files, began_at=began_at).play()


def _begins(database: Database) -> str:
    """What happens first."""
    own = database.embedded_directory is not None
    return "a PostgreSQL of the demo's own is set up" if own else "the server is connected to"


def _stay(here: Call, place: Place, queue: str) -> None:
    """Show what was done in the panel, where there is something left to do, until told to stop."""
    from testigo.cli.serve import serve_here
    from testigo.configuration import Installation
    from testigo.demo.afterwards import LATE_FILES, afterwards
    from testigo.demo.crew import Crew
    from testigo.store.database import Database

    with (
        tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch,
        Database(place.url, schema=place.schema) as database,
    ):
        crew = partial(Crew, place.url, place.schema, scratch=Path(scratch))
        with afterwards(database, crew, queue, Path(scratch)):
            here.note(f"\n{len(LATE_FILES)} more jobs have failed. Find out why in the panel, and retry them.")
            installation = Installation(place.url, place.schema, "the demo")
            serve_here(here, installation, host="127.0.0.1", port=None, lets_in=True)


@contextmanager
def _watched(here: Call, draws: Callable[[Now, int], RenderableType]) -> Iterator[Nobody[Now]]:
    """Whoever watches: a terminal is shown the table that `draws` makes, others read a line for what happens."""
    from testigo.cli.demo.screen import Lines, Nobody, Screen
    from testigo.cli.tables import console

    out = console()
    if here.json:
        yield Nobody()
    elif out.is_terminal:
        with Screen(out, draws) as screen:
            yield screen
    else:
        yield Lines(out)
