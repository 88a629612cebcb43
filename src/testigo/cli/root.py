"""The tree of commands, and how one is run: what it raises becomes words on stderr and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from testigo.cli.failures import INTERRUPTED, PIPE_CLOSED, abandon_stdout, tell, tell_misuse
from testigo.errors import Error

__all__ = ["run", "tree"]

_HELP = """
Work that cannot be lost, results that can be proved.

Where the installation is, is told by --url, TESTIGO_URL or the nearest testigo.toml or pyproject.toml; without these
it is a database of its own under the nearest project. Every command takes --json.
"""

_MORE = """
\b
Exit status: 0 done, 1 doctor or a check found something, 2 misuse,
10 and above an error of that class, 130 Ctrl-C.

\b
Examples:
  testigo doctor
  testigo worker myapp:app
  testigo jobs list --state permanent_failure
"""


def tree() -> typer.Typer:
    """All commands, by their nouns."""
    from testigo.cli import (
        analyser,
        analyses,
        artifacts,
        backup,
        demo,
        doctor,
        events,
        findings,
        gate,
        init,
        installation,
        jobs,
        kinds,
        queues,
        scan,
        serve,
        tokens,
        users,
        worker,
        workers,
    )

    root = typer.Typer(
        help=_HELP,
        epilog=_MORE,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    root.callback()(_root)
    for verbs in (
        demo.group,
        init.group,
        scan.group,
        worker.group,
        serve.group,
        doctor.group,
        installation.group,
        backup.group,
    ):
        root.registered_commands += verbs.registered_commands
    nouns = (jobs.group, queues.group, kinds.group, workers.group, events.group)
    evidence = (analyses.group, findings.group, gate.group, artifacts.group)
    for noun in (*nouns, *evidence, analyser.group, users.group, tokens.group, installation.config):
        root.add_typer(noun)
    return root


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"testigo {version('testigo')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show this release's version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """What is asked of the program itself, and not of one of its commands."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a name that the terminal lacks is no error
    as_json = "--json" in arguments
    try:
        status = typer.main.get_command(tree()).main(list(arguments), prog_name="testigo", standalone_mode=False)
        sys.stdout.flush()
    except Error as error:
        return tell(error, as_json=as_json)
    except typer.TyperException as error:
        return tell_misuse(error, as_json=as_json)
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        abandon_stdout()
        return PIPE_CLOSED
    return status if isinstance(status, int) else 0
