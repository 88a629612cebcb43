"""The demo's workers end with it, and one that ends before is told of."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testigo.demo.crew import Crew
from testigo.errors import Broken
from testigo.store.embedded.processes import process
from tests.worker.kit import await_that


def test_a_worker_that_ends_unasked_is_told_of(database_url: str, tmp_path: Path) -> None:
    """By its number and its status; the others end with the crew."""
    with Crew(database_url, "testigo", "q", tmp_path) as crew:
        first, second = crew.start(), crew.start()
        crew.check()
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        with pytest.raises(Broken, match=r"Worker 1 of the demo ended with status -9"):
            crew.check()
        first.is_killed = True
        crew.check()
    assert second.process.poll() == -signal.SIGKILL


def test_workers_that_may_leave_end_in_order(database_url: str, tmp_path: Path) -> None:
    """With status 0, once they serve."""
    with Crew(database_url, "testigo", "q", tmp_path) as crew:
        member = crew.start()
        await_that(lambda: "runners of" in member.log.read_text(), "the worker's start")
        crew.dismiss()
    assert member.process.returncode == 0, member.log.read_text()


@pytest.mark.needs_linux
def test_workers_die_with_a_demo_that_is_killed(database_url: str, tmp_path: Path) -> None:
    """Nobody is left who could end them."""
    program = """
import sys, time
from pathlib import Path
from testigo.demo.crew import Crew
with Crew(sys.argv[1], "testigo", "q", Path(sys.argv[2])) as crew:
    print(crew.start().process.pid, flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", program, database_url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        pid = int(demo.stdout.readline())
        await_that(lambda: "runners of" in (tmp_path / "worker-1.log").read_text(), "the worker's start")
        demo.kill()
    await_that(lambda: process(pid) is None, "the worker's end")
