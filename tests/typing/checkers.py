"""mypy and pyright, strict, on a file of a user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["mypy", "pyright"]

ROOT = Path(__file__).parent.parent.parent
_QUIET = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYRIGHT_PYTHON_GLOBAL_NODE": "1"}


def mypy(file: Path, cache: Path) -> str:
    """What mypy has to say of the file; nothing of what it imports."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    where = [f"--cache-dir={cache}", "--config-file=", str(file)]
    return _said([*command, *where], {"MYPYPATH": str(ROOT / "src")})


def pyright(file: Path) -> str:
    """What pyright has to say of the file, which lies in a folder of its own; it runs on the Node.js that is here."""
    options = {"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": "error"}
    project = file.with_name("pyrightconfig.json")
    project.write_text(json.dumps({"include": [file.name], **options}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(project)]
    said = _said(command, _QUIET)
    return "" if said.startswith("0 errors, 0 warnings") else said


def _said(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
