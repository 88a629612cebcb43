"""What is said when a command cannot be done: the error's code, message, field, limit and remedy, on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import typer

from testigo.cli.written import to_json
from testigo.errors import Error
from testigo.rules.text import tidy

__all__ = ["INTERRUPTED", "PIPE_CLOSED", "Misuse", "abandon_stdout", "tell", "tell_misuse"]

INTERRUPTED = 130
"""As shells say it of a program that Ctrl-C ended."""
PIPE_CLOSED = 141
"""The same of one whose reader went away, as `| head` does."""


class Misuse(typer.TyperException):
    """A command that cannot be meant so."""

    exit_code = 2


def tell(error: Error, *, as_json: bool) -> int:
    """Say what an error says, in words or as `{"error": {…}}`; returns its exit status."""
    if as_json:
        _say(to_json({"error": _members(error)}))
        return error.exit_status
    _say(f"{error.code}: {error.message}")
    for name, value in (("field", error.field), ("limit", error.limit), ("remedy", error.remedy)):
        if value:
            _say(f"  {name + ':':8}{value}")
    return error.exit_status


def tell_misuse(error: typer.TyperException, *, as_json: bool) -> int:
    """Say how a command was misspelled; returns 2."""
    usage = getattr(error, "ctx", None)
    message = error.format_message().replace("Value error, ", "")  # the words of the library that checks choices
    if as_json:
        named = getattr(getattr(error, "param", None), "name", None) or getattr(error, "option_name", None)
        told: Mapping[str, object] = {"code": "USAGE", "message": message, "field": named}
        _say(to_json({"error": {**told, "exit_status": error.exit_code}}))
        return error.exit_code
    is_help = type(error).__name__ == "NoArgsIsHelpError"
    _say(message if is_help else f"USAGE: {message}")
    if usage is not None and not is_help:
        _say(usage.get_usage() + f"\nHelp: {usage.command_path} --help")
    return error.exit_code


def abandon_stdout() -> None:
    """Let nothing more be written to where nobody reads, not even at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _members(error: Error) -> dict[str, object]:
    facts = {name: value for name, value in error.facts.items() if value is not None}
    return {
        "code": error.code,
        "message": error.message,
        "field": error.field,
        "limit": error.limit,
        "remedy": error.remedy,
        "exit_status": error.exit_status,
        "facts": facts,
    }


def _say(text: str) -> None:
    print(tidy(text, bytes_max=sys.maxsize), file=sys.stderr)
