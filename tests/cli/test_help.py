"""Help answers at once, shows an example of each command that can be typed so, and is in the reference."""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.generate.commands import commands
from testigo.cli import findings, jobs
from testigo.cli.root import run

COMMANDS = dict(commands())
REFERENCE = Path(__file__).parents[2] / "docs/reference/cli.md"
HEAVY = {"sqlalchemy", "psycopg", "alembic", "rich"}
IMPORTED = """
import sys
from testigo.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["jobs", "--help"], ["jobs", "list", "--help"], ["worker", "-h"]])
def test_help_imports_nothing_of_the_database(arguments: list[str]) -> None:
    """What takes time to load is loaded by the commands that need it."""
    ran = subprocess.run([sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Usage: testigo")
    assert not HEAVY & set(ran.stderr.split())


def test_completion_imports_nothing_of_the_database() -> None:
    """Tab after `jobs list --state r` names the states, which are known without asking anybody."""
    asked = {"_TESTIGO_COMPLETE": "complete_bash", "COMP_WORDS": "testigo jobs list --state r", "COMP_CWORD": "4"}
    command = [sys.executable, "-c", IMPORTED]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **asked})
    assert ran.stdout.split() == ["ready", "running", "retry_waiting"]
    assert not HEAVY & set(ran.stderr.split())


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_and_examples_that_parse(path: str) -> None:
    """Each example names the command itself, and says it as it has to be said."""
    command = COMMANDS[path]
    assert command.help
    assert len(_first_sentence(command)) <= 65, "the list of commands would cut it"
    for param in command.params:
        assert param.help, f"{path} {param.opts[0]}"
    examples = command.epilog.splitlines()[2:]
    assert examples
    for line in examples:
        words = shlex.split(re.split(r" [|<>] ", line)[0])
        assert " ".join(words).startswith(path)
        command.make_context(path, words[len(path.split()) :])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_in_the_reference(path: str) -> None:
    """The page of the command line has each command and each of its options."""
    _, _, rest = REFERENCE.read_text("utf-8").partition(f"\n## {path}\n")
    section = rest.partition("\n## ")[0]
    common = REFERENCE.read_text("utf-8").partition("## Options of every command")[2].partition("\n## ")[0]
    assert section
    for param in COMMANDS[path].params:
        for name in param.opts if param.param_type_name == "option" else [param.metavar]:
            assert f"`{name}`" in section + common, f"{path} {name}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_the_common_options(path: str) -> None:
    """`--url`, `--schema` and `--json` mean the same everywhere; what asks no installation takes the last alone."""
    names = {name for param in COMMANDS[path].params for name in param.opts}
    common = {"--url", "--schema", "--json"}
    assert names & common == ({"--json"} if path in ("testigo init", "testigo version") else common)


@pytest.mark.parametrize("noun", [jobs, findings], ids=["jobs", "findings"])
def test_a_noun_has_every_verb_that_its_modules_make(noun: ModuleType) -> None:
    """They are loaded by their names, so one that is not named would be there and could not be called."""
    modules = {each.name: import_module(f"{noun.__name__}.{each.name}") for each in pkgutil.iter_modules(noun.__path__)}
    made = {
        command.name: name
        for name, module in modules.items()
        if hasattr(module, "group")
        for command in module.group.registered_commands
    }
    assert made == noun.VERBS


def test_a_noun_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """That is a misuse, and is answered by the help."""
    assert run(["jobs"]) == 2
    assert "Commands:" in capsys.readouterr().err


def _first_sentence(command: Any) -> str:
    return str(command.help).strip().partition(".")[0]
