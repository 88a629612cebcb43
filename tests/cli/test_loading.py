"""A command loads what it needs and nothing besides: that is most of the time that a short one takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.world import World

LOADED = """
import sys
from testigo.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
SEARCHED = """
import atexit, gc, sys
from testigo.cli import main
searches = []
gc.callbacks.append(lambda phase, told: searches.append(phase))
atexit.register(lambda: print(len(searches), len(gc.get_objects()), file=sys.stderr))
main(sys.argv[1:])
"""
NOUNS = {"analyses", "findings", "gate", "jobs", "queues", "scan", "serve", "users", "worker", "workers"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "list"],
        ["jobs", "list", "--queue", "q", "--json"],
        ["queues", "list"],
        ["workers", "list"],
        ["findings", "list", "shop"],
    ],
)
def test_a_command_that_looks_loads_no_other_and_no_library_that_it_does_not_ask(
    arguments: list[str], world: World, database_url: str
) -> None:
    """Not pydantic to see that a word is a word, not Alembic for a schema that fits, no other noun's module."""
    world.submit(queue="q")
    command = [sys.executable, "-c", LOADED, *arguments, "--url", database_url]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = set(ran.stderr.split())
    assert "psycopg" in loaded, ran.stderr
    assert not {"pydantic", "alembic", "cryptography", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"} & loaded
    assert "testigo.store.embedded.sharing" not in loaded, "nobody asked for a server to be started"
    assert not {f"testigo.cli.{noun}" for noun in NOUNS - {arguments[0]}} & loaded


def test_a_look_at_jobs_loads_nothing_by_which_they_are_changed(world: World, database_url: str) -> None:
    """No verb of the noun that changes, not what becomes of a job, nor what secrets look like."""
    world.submit()
    command = [sys.executable, "-c", LOADED, "jobs", "list", "--url", database_url]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = set(ran.stderr.split())
    assert "testigo.authority.read.jobs" in loaded, ran.stderr
    assert "testigo.cli.jobs.controlling" not in loaded
    assert not {"testigo.rules.decide", "testigo.rules.outcomes", "testigo.rules.discreet"} & loaded


def test_what_was_loaded_is_not_searched_for_what_nobody_needs(world: World, database_url: str) -> None:
    """What is loaded stays: neither meanwhile nor at its end does a short command look for garbage among it."""
    world.submit()
    command = [sys.executable, "-c", SEARCHED, "jobs", "list", "--url", database_url]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr.split() == ["0", "0"]
