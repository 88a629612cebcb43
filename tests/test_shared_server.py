"""A run's shared server is one, and ends with the run, however the run ends."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.services import embedded_bindir
from tests.shared_server import run_directory, shared_server_url

ROOT = Path(__file__).parent.parent

RUN = """
import sys
from tests.services import embedded_bindir
from tests.shared_server import run_directory, shared_server_url
with run_directory() as run:
    print(shared_server_url(run, "postgres18", embedded_bindir()), flush=True)
    sys.stdin.read()
"""


def test_all_who_ask_share_one_server_and_it_ends_with_the_run() -> None:
    """Many processes of a run ask at once: one server answers, and leaving the run stops it and clears up."""
    with run_directory() as run:
        with ThreadPoolExecutor(4) as askers:
            urls = list(askers.map(lambda _: shared_server_url(run, "postgres18", embedded_bindir()), range(4)))
        assert len(set(urls)) == 1
        psycopg.connect(urls[0]).close()
    assert not run.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(urls[0])


def test_a_killed_run_leaves_no_server_behind() -> None:
    """SIGKILL of the run cannot be caught; its keeper sees the end of it all the same, and stops the server."""
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        psycopg.connect(url).close()
        run.kill()
    deadline = time.monotonic() + 90
    while _answers(url):
        assert time.monotonic() < deadline, "the server outlived its run"
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
