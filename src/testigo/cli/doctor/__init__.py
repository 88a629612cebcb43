"""`testigo doctor`: what is wrong with this installation, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.errors import Error

if TYPE_CHECKING:
    from testigo.cli.doctor.findings import Finding

__all__ = ["group"]

group = call.group("doctor", "")


@command(group, "doctor", "doctor", "doctor --url postgresql://app@db/work --json")
def doctor(here: Call) -> None:
    """Find what is wrong with this installation, and what to do.

    It looks at versions, schema, rights, settings, clocks, what holds the server's cleaning back, jobs that nobody
    serves and workers that went silent, for which it watches them for some seconds. It changes nothing. Exit status 1
    if it found a fault or a warning, 0 if all is well.
    """
    from testigo.cli.doctor.findings import Level

    with _named(here) as before:
        found = list(_found(here, before))
    is_well = all(finding.level is Level.NOTE for finding in found)
    here.answer({"is_well": is_well, "findings": found}, lambda: _tell(found))
    if not is_well:
        raise typer.Exit(1)


def _found(here: Call, before: Callable[[str], object]) -> Iterator[Finding]:
    from testigo.cli.doctor.examine import examine
    from testigo.cli.doctor.findings import Finding, Level
    from testigo.cli.doctor.host import disk
    from testigo.cli.installation import located
    from testigo.store.urls import embedded_directory

    before("server")
    try:
        with located(here) as url:
            directory = embedded_directory(here.place.url)
            if directory is not None:
                yield from disk(directory)
            yield from examine(url, here.place.schema, before)
    except Error as error:
        yield Finding(error.code, Level.FAULT, error.message, "Nothing can be done without it.", error.remedy)


@contextmanager
def _named(here: Call) -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is looked at."""
    from testigo.cli.tables import console

    out = console(stderr=True)
    if here.json or not out.is_terminal:
        yield lambda name: None
        return
    with out.status("Looking …") as status:
        yield lambda name: status.update(f"Looking at: {name} …")


def _tell(found: Sequence[Finding]) -> None:
    from testigo.cli.tables import console, print_hanging, styled

    out = console()
    for finding in found:
        out.print(styled(finding.level), f" {finding.code}", sep="")
        for label, text in (("  ", finding.what), ("  why: ", finding.why), ("  do:  ", finding.remedy)):
            print_hanging(label, text)
    if not found:
        out.print("All is well.")
