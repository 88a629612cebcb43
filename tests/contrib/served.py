"""The example applications as users run them: a server and a worker, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from psycopg.conninfo import conninfo_to_dict

from tests.worker.kit import await_that

__all__ = ["DJANGO_SHOP", "ROOT", "django_environment", "served", "started"]

ROOT = Path(__file__).parents[2]
DJANGO_SHOP = ROOT / "examples" / "django_shop"


def django_environment(url: str) -> dict[str, str]:
    """How the Django example is told of its database; nothing else says where it is."""
    names = {"SHOP_DB_NAME": "dbname", "SHOP_DB_USER": "user", "SHOP_DB_HOST": "host", "SHOP_DB_PORT": "port"}
    at = conninfo_to_dict(url)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TESTIGO_", "DJANGO_"))}
    return {**kept, **{name: str(at[key]) for name, key in names.items()}}


@contextmanager
def started(arguments: list[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process at the project's root, which is stopped at the end; all that it says goes into `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            status = process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert status in (0, -15), f"{arguments} ended with {status}:\n{log.read_text('utf-8')}"


@contextmanager
def served(arguments: list[str], port: int, environment: Mapping[str, str], log: Path) -> Iterator[httpx.Client]:
    """A client of the server that these arguments start, once it answers."""
    with (
        started(arguments, environment, log) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90) as client,
    ):

        def answers() -> bool:
            assert process.poll() is None, log.read_text("utf-8")
            try:
                client.get("/")
            except httpx.TransportError:
                return False
            return True

        await_that(answers, "an answer of the server")
        yield client
