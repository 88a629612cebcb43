"""`manage.py testigo …`: the command line of testigo, on Django's database."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import REMAINDER
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from testigo.contrib.django.place import place

__all__ = ["Command"]

RUNNER_APP = "testigo.contrib.django.runner:app"


class Command(BaseCommand):
    """Everything after `testigo` is what the program `testigo` is given; `worker` needs no application.

    From a shell the program takes this process's place, so that signals reach it and a worker's keeper
    carries nothing of the project. `call_command` runs it beside the caller, and raises `CommandError`
    with its exit status.
    """

    help = "The command line of testigo on this project's database: worker, jobs, queues, doctor, migrate …"
    requires_system_checks = ()
    _takes_over = False

    def add_arguments(self, parser: CommandParser) -> None:
        """All that follows."""
        parser.add_argument("arguments", nargs=REMAINDER, metavar="COMMAND …", help="as of `testigo --help`")

    def run_from_argv(self, argv: list[str]) -> None:
        """As called from a shell."""
        self._takes_over = True
        super().run_from_argv(argv)

    def handle(self, *_: Any, arguments: Sequence[str], **__: Any) -> None:
        """Run it."""
        command = [sys.executable, "-m", "testigo", *_completed(arguments or ["--help"])]
        if self._takes_over:
            sys.stdout.flush()
            os.execve(command[0], command, _environment())  # noqa: S606  # a list, and no shell
        done = subprocess.run(command, env=_environment(), check=False)
        if done.returncode:
            told = f"testigo {' '.join(arguments)} ended with status {done.returncode}."
            raise CommandError(told, returncode=done.returncode)


def _completed(arguments: Sequence[str]) -> list[str]:
    """The arguments; a worker's with the project's application."""
    name, *others = arguments
    return [name, RUNNER_APP, *others] if name == "worker" else [name, *others]


def _environment() -> dict[str, str]:
    """This process's, with the way to the database, which no list of processes shows, and to the project's modules."""
    here = place()
    modules = [sys.path[0], *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"TESTIGO_URL": here.url, "TESTIGO_SCHEMA": here.schema, "PYTHONPATH": os.pathsep.join(modules)}
    return {**os.environ, **own}
