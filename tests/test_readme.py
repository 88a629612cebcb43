"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_the_readme_s_example_accepts_a_job(database_url: str) -> None:
    """The block of Python runs as it stands, and prints the id of an accepted job (spec D-02)."""
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert ID.fullmatch(_run(database_url, "-c", block).strip())


def test_the_demo_tells_the_story_that_the_readme_tells(database_url: str) -> None:
    """`examples/first.py`, which `make demo` runs, prints the lines of the README, ids apart."""
    (shown,) = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    database, *told = _run(database_url, str(ROOT / "examples" / "first.py")).splitlines()
    assert database.startswith("database")
    assert [ID.sub("…", line) for line in told] == [ID.sub("…", line) for line in shown.splitlines()]


def _run(database_url: str, *arguments: str) -> str:
    environment = {**os.environ, "TESTIGO_URL": database_url}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
