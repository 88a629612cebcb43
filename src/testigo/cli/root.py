"""The tree of commands, and how one is run: what it raises becomes words on stderr and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from testigo.cli.call import Noun
from testigo.cli.extras import lacking
from testigo.cli.failures import INTERRUPTED, PIPE_CLOSED, abandon_stdout, tell, tell_misuse
from testigo.errors import Error

__all__ = ["run", "tree"]

_HELP = """
Work that cannot be lost, results that can be proved.

Where the installation is, is told by --url, TESTIGO_URL or the nearest testigo.toml or pyproject.toml; without these
it is a database of its own under the nearest project. Every command takes --json.
"""

_HOMES = {
    "demo": "demo",
    "init": "init",
    "scan": "scan",
    "worker": "worker",
    "serve": "serve",
    "doctor": "doctor",
    "migrate": "installation",
    "version": "installation",
    "backup": "backup",
    "restore": "backup",
    "jobs": "jobs",
    "queues": "queues",
    "kinds": "kinds",
    "workers": "workers",
    "events": "events",
    "analyses": "analyses",
    "findings": "findings",
    "gate": "gate",
    "artifacts": "artifacts",
    "analyser": "analyser",
    "user": "users",
    "token": "tokens",
    "config": "config",
}
"""The module of each command or noun, in the order of the help."""

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
    root = typer.Typer(
        cls=Root,
        help=_HELP,
        epilog=_MORE,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    root.callback()(_root)
    return root


class Root(Noun):
    """The program itself, which loads of its commands only the one that is called."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{**named, "commands": {}})
        self.commands = Commands("testigo.cli", _HOMES)  # type: ignore[assignment]  # nobody adds to it


class Commands(Mapping[str, Any]):
    """The commands by their names, each made when it is first asked for, with the module of the package that has it.

    A noun whose verbs have modules of their own names these as `VERBS`.
    """

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package = package
        self._homes = homes
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module = import_module(f"{self._package}.{self._homes[name]}")
            home = typer.main.get_group(module.group)
            if hasattr(module, "VERBS"):
                home.commands = Commands(module.__name__, module.VERBS)  # type: ignore[assignment]
            self._made[name] = home.commands.get(name, home)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


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
    except ModuleNotFoundError as error:
        return tell_misuse(lacking(error), as_json=as_json)
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        abandon_stdout()
        return PIPE_CLOSED
    return status if isinstance(status, int) else 0
