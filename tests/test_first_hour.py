"""The README and the tutorial, followed to the letter in an empty home, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.worker.kit import await_that

ROOT = Path(__file__).parent.parent
NOBODY = 65_534
BLOCK = re.compile(r"```python\n# (\S+)\n(.*?)```", flags=re.DOTALL)
CONSOLE = re.compile(r"^\$ (.*?)(?: +# .*)?$", flags=re.MULTILINE)
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PATIENCE_SECONDS = 120


class Shell:
    """A shell in an empty home: the clone's environment is active, and nothing else is set."""

    def __init__(self, home: Path, *, root: bool) -> None:
        self.home = home
        # An ordinary user finds Python where anybody may read it; here root's own may be the only one.
        reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *reads]
        self._as = other if os.geteuid() == 0 and not root else []
        self._environment = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "LANG": "C.UTF-8",
        }

    def run(self, line: str) -> str:
        """What a command prints, which succeeds."""
        done = subprocess.run(
            [*self._as, "sh", "-c", line], cwd=self.home, env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def started(self, line: str) -> Iterator[subprocess.Popen[str]]:
        """A command in a terminal of its own; Ctrl-C ends it."""
        with (self.home / "log").open("a") as log:
            process = subprocess.Popen(
                [*self._as, "sh", "-c", f"exec {line}"],
                cwd=self.home, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    process.wait(PATIENCE_SECONDS)

    def write(self, page: str) -> str:
        """Write the files that a page shows; returns the page."""
        text = (ROOT / page).read_text("utf-8")
        for name, block in BLOCK.findall(text):
            (self.home / name).write_text(block, "utf-8")
        return text


@pytest.fixture(params=["ordinary", pytest.param("root", marks=pytest.mark.needs_root)])
def shell(request: pytest.FixtureRequest) -> Iterator[Shell]:
    """For each kind of user, in a home that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="testigo-home-"))
    if os.geteuid() == 0 and request.param == "ordinary":
        os.chown(home, NOBODY, NOBODY)
    try:
        yield Shell(home, root=request.param == "root")
    finally:
        shutil.rmtree(home)


def test_the_tutorial_is_followed_to_the_letter(shell: Shell) -> None:
    """Two terminals, a kill, and the result that is shown: on the embedded database, which nobody had to make."""
    page = shell.write("docs/tutorial/first-job.md")
    _install, order, worker, kill, again = CONSOLE.findall(page)
    assert worker == again
    (shown,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    with shell.started(order) as first, ExitStack() as second:
        assert first.stdout is not None
        found = ID.search(first.stdout.readline())
        assert found is not None
        killed = second.enter_context(shell.started(worker))
        await_that(lambda: _has_checkpoint(shell, found.group()), "the first checkpoint")
        shell.run(f"{kill} --session {killed.pid}")  # of this terminal, whoever else follows the tutorial here
        second.enter_context(shell.started(again))
        assert first.stdout.read() == shown
        assert first.wait() == 0


def test_the_readme_is_followed_to_the_letter(shell: Shell) -> None:
    """The demo that `make demo` runs, its example beside a worker, and a project to begin with, whose tests pass."""
    page = shell.write("README.md")
    assert "There is one analysis, whole." in shell.run("testigo demo --jobs 10")
    worker, example = CONSOLE.findall(page[page.index("## What it looks like") :])
    (shown,) = re.findall(r"^\$ python media\.py\n(.*?)```", page, flags=re.DOTALL | re.MULTILINE)
    with shell.started(worker.removesuffix(" &")):
        assert ID.sub("…", shell.run(example)) == ID.sub("…", shown)
        assert json.loads(shell.run("testigo jobs list --json"))["jobs"][0]["state"] == "succeeded"
    shell.run("testigo init my-project")
    assert "passed" in shell.run("cd my-project && python -m pytest -q -p no:cacheprovider")


def _has_checkpoint(shell: Shell, job_id: str) -> bool:
    return json.loads(shell.run(f"testigo jobs show {job_id} --json"))["job"]["checkpoint_bytes"] is not None
