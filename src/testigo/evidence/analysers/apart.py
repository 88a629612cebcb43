"""Programs that are installed apart: each in a Python environment of its own, so that its pins are nobody else's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from testigo.errors import Conflict, Invalid

__all__ = ["FOLDER_VARIABLE", "INSTALLABLE", "folder", "install"]

FOLDER_VARIABLE = "TESTIGO_ANALYSERS"
INSTALLABLE = frozenset({"semgrep"})
"""Analysers whose program is a distribution of that name."""
PIP = ("-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade")


def folder() -> Path:
    """Where they are: what `TESTIGO_ANALYSERS` names, else `testigo/analysers` in the user's data folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "testigo" / "analysers"


def install(name: str, into: Path) -> Path:
    """Make the environment `name` in the folder `into` and install the program from the package index; its folder.

    An environment that is there is brought up to date. Raises Invalid for an analyser that is not
    installed apart, and Conflict if it cannot be done: then an environment that was not there is not left.
    """
    if name not in INSTALLABLE:
        raise Invalid(
            f"{name[:100]!r} is not installed apart.", field="analyser", remedy=f"One of: {', '.join(INSTALLABLE)}."
        )
    home = into / name
    was_there = home.exists()
    python = home / "bin" / "python"
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-I", "-m", "venv", str(home)], check=True, capture_output=True)
        subprocess.run([str(python), *PIP, name], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        if not was_there:
            shutil.rmtree(home, ignore_errors=True)
        how = f"status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else str(error.strerror)
        raise Conflict(
            f"{name} cannot be installed: {how}.",
            remedy=f"Run it by hand and read what it says: {python} -m pip install {name}.",
        ) from error
    return home
