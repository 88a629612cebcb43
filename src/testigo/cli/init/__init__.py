"""`testigo init`: begin a project."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.errors import Conflict, Invalid

__all__ = ["group"]

group = call.group("init", "")

NAME_CHARS_MAX = 100


@command(group, "init", "init", "init my-project", asks=False)
def init(
    here: Call,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder; it is made if it is not there.", show_default="here")
    ] = Path(),
) -> None:
    """Write a starting project: a job, its tests, how to run them.

    Nothing is overwritten: where one of the files is there already, nothing is written at all.
    """
    from testigo.cli.init.project import FILES

    folder = folder.absolute()
    name = _name(folder)
    _refuse_what_is_there(folder, list(FILES))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in FILES.items():
            with (folder / file).open("x", encoding="utf-8") as written:
                written.write(text.replace("NAME", name))
    except OSError as error:
        raise _unwritable(error) from error
    here.answer({"folder": str(folder), "name": name, "files": list(FILES)}, lambda: _tell(folder, list(FILES)))


def _name(folder: Path) -> str:
    """The project's name after its folder's, of the letters that every tool takes."""
    plain = unicodedata.normalize("NFKD", folder.name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()[:NAME_CHARS_MAX]).strip("-") or "work"


def _refuse_what_is_there(folder: Path, files: list[str]) -> None:
    try:
        found = [file for file in files if (folder / file).is_symlink() or (folder / file).exists()]
    except OSError as error:
        raise _unwritable(error) from error
    if found:
        told = f"There is already {', '.join(found)} in {folder}; nothing was written."
        raise Conflict(told, field="folder", remedy="Choose an empty folder.")


def _unwritable(error: OSError) -> Invalid:
    told = f"The project cannot be written: {error}."
    return Invalid(told, field="folder", remedy="Choose a folder that you may write to.")


def _tell(folder: Path, files: list[str]) -> None:
    print(f"Written to {folder}: {', '.join(files)}.")
    print("Go on with README.md there: a worker, a job, the tests.")
