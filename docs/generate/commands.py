"""The page of the command line: every command with its options and examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from docs.generate.markdown import page, prose, sentence, table
from testigo.cli.root import tree
from testigo.errors import Error

__all__ = ["commands", "commands_page"]

INTRO = """
`testigo` is one program with the commands below; `python -m testigo` is the same. Where it connects is told by `--url`,
`TESTIGO_URL` or the nearest `testigo.toml` or `pyproject.toml`; else it is `embedded:` under the nearest project.

Answers go to stdout, everything else to stderr. With `--json` an answer is one object, or one a line where there may be
many; members keep their names from release to release, times are UTC in ISO 8601. On a terminal a list fits its width;
into a pipe everything is written in full. `NO_COLOR` is heeded. `testigo --install-completion` teaches the shell to
complete commands, options, states, queues and kinds.
"""

STATUSES = """
A refusal is told on stderr as `CODE: message` with its field, its limit and what to do; with `--json` as
`{"error": {…}}`. The exit status is that of its family:
"""

COMMON = ("--url", "--schema", "--json")


def commands_page() -> str:
    """Every command, noun by noun."""
    parts = [part for path, command in commands() for part in _command(path, command)]
    return page(
        "Command line",
        "src/testigo/cli",
        prose(INTRO),
        "## Exit statuses",
        prose(STATUSES),
        table(["status", "meaning"], _statuses()),
        "## Options of every command",
        table(["option", "meaning"], _common()),
        *parts,
    )


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by what is typed for it, in the order of the help."""
    yield from _below("testigo", typer.main.get_command(tree()))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from _below(f"{path} {name}", each)


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"## {path}"
    yield prose(command.help)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each not in arguments and each.opts[0] not in COMMON]
    metavars = [_metavar(each) for each in arguments]
    yield "```text\n" + " ".join([path, *metavars, *(["[OPTIONS]"] if options else [])]) + "\n```"
    rows = [[f"`{_metavar(each)}`", sentence(each.help), ""] for each in arguments]
    rows += [[_option(each), sentence(each.help), _default(each)] for each in options]
    if rows:
        yield table(["argument or option", "meaning", "default"], rows)
    yield "```console\n" + "\n".join(f"$ {line}" for line in _examples(command)) + "\n```"


def _examples(command: Any) -> list[str]:
    return [line.strip() for line in command.epilog.splitlines()[2:]]


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _option(param: Any) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(param.opts, key=len))
    return names if param.is_flag else f"{names} `{_metavar(param)}`"


def _default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return param.show_default
    if param.is_flag or param.default in (None, "", ()):
        return ""
    return f"`{param.default}`"


def _common() -> list[list[str]]:
    _, command = next(commands())
    found = [each for each in command.params if each.opts[0] in COMMON]
    return [[_option(each), sentence(each.help)] for each in found]


def _statuses() -> list[list[str]]:
    families = [family for family in Error.__subclasses__() if family.__module__ == Error.__module__]
    known = [(str(family.exit_status), sentence(family.__doc__)) for family in families]
    return [
        ["0", "Done."],
        ["1", "A check found something: `doctor`, `migrate --check`; or somebody who was asked said no."],
        ["2", "Misuse: no such command, option or value."],
        *([status, meaning] for status, meaning in sorted(known)),
        ["130", "Ctrl-C."],
        ["141", sentence("Whoever read the answer went away, as `| head` does.")],
    ]
