"""`testigo demo`: real work under real kills, watched live and counted afterwards."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command, refusals_told
from testigo.cli.failures import Misuse
from testigo.cli.leaving import leaving_in_order
from testigo.settings import LIMITS, STORE

if TYPE_CHECKING:
    from testigo.demo.engine import Audience, Played

__all__ = ["group"]

group = call.group("demo", "")

FILES = 400
FILES_SCANNED = 60
SCHEMA_ELSEWHERE = "testigo_demo"
"""On a server of the user's own, the demo keeps apart from what is there."""


@command(group, "demo", "demo", "demo --stay", "demo --path src --jobs 100", "demo --data demo-data")
def demo(
    here: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which demo: engine or scan.")] = "engine",
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
            show_default=f"{FILES}, of a scan {FILES_SCANNED}",
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

    Each of some hundred Python files is a job that several workers look at: its tokens, its digest, what ruff says of
    it. Meanwhile a runner, a whole worker and the database server are killed with SIGKILL. In the end the database is
    asked what became of every job. Exit status 0 if nothing was lost, nothing counted twice and no event is missing,
    else 1.

    With `scan` real analysers look at the files, and the publisher is killed when it has inserted everything that they
    found. Exit status 0 if there is one analysis in the end, whole.

    It runs on an embedded database of its own, whatever TESTIGO_URL says. With --url it runs on that one, in the
    schema testigo_demo; a server that is not embedded is not killed. With --stay it goes on: three more jobs fail, for
    a reason that has gone when the panel opens, where they can be found and retried.
    """
    from testigo.cli.demo.words import answer, called, tell
    from testigo.demo.files import python_files, standard_library

    if name not in ("engine", "scan"):
        raise Misuse(f"There is no demo {name!r}: there are `engine` and `scan`.")
    if data is not None and here.url is not None:
        raise Misuse("Choose one of --data and --url.")
    count = jobs or (FILES if name == "engine" else FILES_SCANNED)
    files = standard_library(count) if path is None else python_files(path, count)
    if name == "scan":
        _scan(here, files, data, stays=stay)
        return
    with leaving_in_order(), _place(here, data) as (url, schema):
        with _watched(here) as audience:
            played = _play(url, schema, files, audience)
        kept = None if here.url is None and data is None else url
        here.answer(answer(played, kept, schema), lambda: tell(played, _leading_to(kept, schema), called(), stays=stay))
        if stay:
            _stay(here, url, schema, played.queue)
    if not played.proof.holds:
        raise typer.Exit(1)


def _scan(here: Call, files: list[Path], data: Path | None, *, stays: bool) -> None:
    from testigo.cli.demo.scanned import answer, tell
    from testigo.cli.scan import needing
    from testigo.cli.serve import free_port, serve_here
    from testigo.configuration import Installation
    from testigo.store.database import Database

    began_at = time.monotonic()
    with leaving_in_order(), _place(here, data) as (url, schema):
        with (
            tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch,
            _watched(here) as audience,
            Database(url, schema=schema) as database,
            needing(),
        ):
            from testigo.demo.scan import copied, play

            audience.happens(
                0.0, "a database of the demo's own is set up" if here.url is None else "it is connected to"
            )
            with refusals_told():
                database.migrate()
            tree = copied(files, Path(scratch, "tree"))
            scanned = play(database, url, schema, tree, audience.happens, began_at=began_at)
        here.answer(answer(scanned), lambda: tell(scanned))
        if stays:
            serve_here(here, Installation(url, schema, "the demo"), host="127.0.0.1", port=free_port(), lets_in=True)
    if not scanned.holds:
        raise typer.Exit(1)


def _play(url: str, schema: str, files: list[Path], audience: Audience) -> Played:
    from testigo.demo.crew import Crew
    from testigo.demo.engine import Engine
    from testigo.store.database import Database

    began_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch, Database(url, schema=schema) as database:
        own = database.embedded_directory is not None
        audience.happens(0.0, "a PostgreSQL of the demo's own is set up" if own else "the server is connected to")
        with refusals_told():
            database.migrate()
        crew = partial(Crew, url, schema, scratch=Path(scratch))
        return Engine(database, crew, audience, files, began_at=began_at).play()


def _leading_to(url: str | None, schema: str) -> str | None:
    """The options that lead a command to what is kept."""
    if url is None:
        return None
    return f"--url {shlex.quote(url)}" + ("" if schema == STORE.schema else f" --schema {shlex.quote(schema)}")


def _stay(here: Call, url: str, schema: str, queue: str) -> None:
    """Show what was done in the panel, where there is something left to do, until told to stop."""
    from testigo.cli.serve import free_port, serve_here
    from testigo.configuration import Installation
    from testigo.demo.afterwards import LATE_FILES, afterwards
    from testigo.demo.crew import Crew
    from testigo.store.database import Database

    with tempfile.TemporaryDirectory(prefix="testigo-demo-") as scratch, Database(url, schema=schema) as database:
        crew = partial(Crew, url, schema, scratch=Path(scratch))
        with afterwards(database, crew, queue, Path(scratch)):
            here.note(f"\n{len(LATE_FILES)} more jobs have failed. Find out why in the panel, and retry them.")
            serve_here(here, Installation(url, schema, "the demo"), host="127.0.0.1", port=free_port(), lets_in=True)


@contextmanager
def _place(here: Call, data: Path | None) -> Iterator[tuple[str, str]]:
    """The URL and schema of the demo's installation; a temporary one is gone afterwards."""
    if here.url is not None:
        yield here.url, here.schema or SCHEMA_ELSEWHERE
        return
    schema = here.schema or STORE.schema
    if data is not None:
        yield f"embedded:{data.absolute()}", schema
        return
    folder = tempfile.mkdtemp(prefix="testigo-demo-")
    try:
        yield f"embedded:{folder}", schema
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _watched(here: Call) -> Iterator[Audience]:
    """Whoever watches: a terminal is shown a table, others read a line for each thing that happens."""
    from testigo.cli.demo.screen import Lines, Nobody, Screen
    from testigo.cli.tables import console

    out = console()
    if here.json:
        yield Nobody()
    elif out.is_terminal:
        with Screen(out) as screen:
            yield screen
    else:
        yield Lines(out)
