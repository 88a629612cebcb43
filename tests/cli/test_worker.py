"""`testigo worker` runs what was submitted by the command line, and says how it is with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.process import PATIENCE_SECONDS

APP = """
from testigo import App, Context

app = App("media")


@app.job("media.transcode", queue="media")
def transcode(ctx: Context, path: str) -> str:
    ctx.log(f"opened {path}")
    return path.upper()
"""

INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "testigo.worker.runners":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
"""Ctrl-C in the midst of loading a worker."""


@pytest.mark.parametrize(
    "options",
    [["--runners", "1", "--slots", "2", "--queues", "media,other,media"], ["--inline", "--queues", "media,media"]],
)
def test_a_worker_runs_what_was_submitted(cli: Cli, tmp_path: Path, options: list[str]) -> None:
    """From submit to the output, its log lines as JSON, and drained by SIGTERM with status 0. A queue that is named
    twice is served once."""
    (tmp_path / "myapp.py").write_text(APP)
    job = cli("jobs", "submit", "media.transcode", "--queue", "media", "--payload", '{"path": "a.mp4"}').out.strip()
    command = [sys.executable, "-m", "testigo", "worker", "myapp:app", "--json", *options]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as worker:
        try:
            waited = cli("jobs", "wait", job, "--timeout", f"{PATIENCE_SECONDS:g}", "--json")
            assert (waited.status, waited.json["output"]) == (0, "A.MP4")
            assert cli("jobs", "log", job).out.endswith("info opened a.mp4\n")
        finally:
            worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=PATIENCE_SECONDS)
    assert worker.returncode == 0
    assert "testigo.worker" in {json.loads(line)["logger"] for line in said.splitlines()}


def test_a_worker_without_its_application_says_so(cli: Cli, tmp_path: Path) -> None:
    """With the status of bad input."""
    command = [sys.executable, "-m", "testigo", "worker", "nothing:app", "--runners", "1"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 11
    assert "No module named 'nothing'" in ran.stderr
    assert cli("workers", "list", "--json").json == {"workers": [], "next": None}


def test_ctrl_c_while_it_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    """The command becomes the process of the worker, which has not begun yet: it ends as told, without a word."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED)
    command = [sys.executable, "-m", "testigo", "worker", "myapp:app"]
    there = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
