"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testigo.cli.demo.words import tell
from testigo.demo.engine import Killed, Played
from testigo.demo.proof import Findings, Proof

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_the_readme_s_example_runs_as_it_is_written(database_url: str, tmp_path: Path) -> None:
    """With a worker beside it, the block of Python prints what the block of the console shows (spec D-02)."""
    (block,) = re.findall(r"```python\n# media.py\n(.*?)```", README, flags=re.DOTALL)
    ((command, shown),) = re.findall(r"^\$ (python media\.py)\n(.*?)```", README, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "media.py").write_text(block)
    environment = {**os.environ, "TESTIGO_URL": database_url}
    with (tmp_path / "worker.log").open("w") as log:
        command_line = [sys.executable, "-m", "testigo", "worker", "media:app"]
        worker = subprocess.Popen(command_line, cwd=tmp_path, env=environment, stderr=log)
    try:
        said = _run(database_url, *command.split()[1:], folder=tmp_path)
    finally:
        worker.terminate()
        status = worker.wait(timeout=60)
    assert ID.sub("…", said) == ID.sub("…", shown)
    assert status == 0


def test_the_demo_ends_as_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word, with the numbers of the run that is shown."""
    shown, _ = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    often = (("UP031", 1_800), ("I001", 324), ("UP032", 310))
    findings = Findings(400, 8_629_780, 231_956, 1_144_702, linted=400, diagnostics=4_629, often=often)
    none = dict.fromkeys(("degraded", "failed", "lost", "doubled", "gaps", "late"), 0)
    proof = Proof(submitted=400, succeeded=400, recovered=8, events=808, findings=findings, **none)
    tell(Played(proof, Killed(1, 1, 1), 27.0, "demo"), None, ".venv/bin/testigo", stays=False)
    assert capsys.readouterr().out == f"\n{shown}"


def test_the_example_tells_the_story_that_the_readme_tells(database_url: str) -> None:
    """`examples/first.py` prints the lines of the README, ids apart."""
    _, shown = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    database, *told = _run(database_url, str(ROOT / "examples" / "first.py")).splitlines()
    assert database.startswith("database")
    assert [ID.sub("…", line) for line in told] == [ID.sub("…", line) for line in shown.splitlines()]


def _run(database_url: str, *arguments: str, folder: Path = ROOT) -> str:
    environment = {**os.environ, "TESTIGO_URL": database_url}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
