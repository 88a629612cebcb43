"""Asking before something is done that cannot be undone, or to many."""

from __future__ import annotations

import sys

import typer

from testigo.cli.failures import Misuse

__all__ = ["agree"]


def agree(question: str, *, yes: bool) -> None:
    """Go on only if somebody says so, or `--yes` did; whoever says no leaves with status 1.

    Where nobody can be asked, `--yes` is missing: that is a misuse.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Misuse(f"{question} Nobody can be asked here: say --yes.")
    if not typer.confirm(question, err=True):
        print("Nothing was done.", file=sys.stderr)
        raise typer.Exit(1)
