"""Analysers that live in environments of their own, since what they need would hold back ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from testigo.errors import Broken, NotFound
from testigo.evidence.analysers import analyser

__all__ = ["APART", "install"]

APART = {"semgrep": "semgrep>=1.100,<2"}
"""What is installed for each of them, as pip is told."""


def install(name: str, apart: Path) -> str:
    """Install an analyser into a new environment below `apart`, from the index that pip is set to; its version.

    One that is there already is replaced. Raises `NotFound` for an analyser that is not installed so, and `Broken`
    if pip cannot: then there is none.
    """
    if name not in APART:
        raise NotFound(f"{name[:100]!r} is not installed apart.", field="name", remedy=f"One of: {', '.join(APART)}.")
    folder = apart / name
    shutil.rmtree(folder, ignore_errors=True)
    program = str(folder / "bin" / "python")
    try:
        subprocess.run((sys.executable, "-m", "venv", str(folder)), check=True, stdin=subprocess.DEVNULL)
        quietly = ("--quiet", "--disable-pip-version-check", "--no-input")
        subprocess.run((program, "-m", "pip", "install", *quietly, APART[name]), check=True, stdin=subprocess.DEVNULL)
        return analyser(name, apart=apart).version()
    except (OSError, subprocess.CalledProcessError, NotFound) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Broken(f"{name} could not be installed.", remedy="See what pip says above, and try again.") from error
