"""What the jobs of the demo do: each looks at one Python file, and tells what it found."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sysconfig
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testigo import App, Context, Degraded, Permanent

__all__ = ["KIND", "Report", "app", "look", "ruff_program"]

KIND = "demo.look"
RUFF_SECONDS = 60.0
"""For one file; ruff takes some hundredths of a second."""

app = App("demo")


@dataclass
class Report:
    """What a job found in its file."""

    path: str
    size_bytes: int
    lines: int
    tokens: int
    digest: str
    """SHA-256 of the file, in hexadecimal."""
    diagnostics: dict[str, int] | None
    """How often each rule of ruff was broken; None where ruff is not installed."""


@app.job(KIND, timeout=120)
def look(ctx: Context, path: str) -> Report | Degraded[Report]:
    """Look at one file. What is no Python is told of within limits, what cannot be read fails for good."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Permanent("unreadable", str(error)) from error
    tokens, trouble = _count_tokens(content)
    digest = hashlib.sha256(content).hexdigest()
    report = Report(path, len(content), len(content.splitlines()), tokens, digest, _diagnostics(path))
    if trouble:
        ctx.log(f"{path}: {trouble}", level="warning")
        return Degraded(report, limitations=[f"counted up to where it is no Python: {trouble}"])
    return report


@cache
def ruff_program() -> str | None:
    """The program ruff, of this environment or else of the path; None where it is not installed."""
    beside = Path(sysconfig.get_path("scripts"), "ruff")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("ruff")


def _count_tokens(content: bytes) -> tuple[int, str]:
    """How many tokens there are, and what ended them before the file did."""
    tokens = 0
    try:
        for _ in tokenize.tokenize(io.BytesIO(content).readline):
            tokens += 1
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        return tokens, f"{type(error).__name__}: {error}"
    return tokens, ""


def _diagnostics(path: str) -> dict[str, int] | None:
    ruff = ruff_program()
    if ruff is None:
        return None
    options = ("--isolated", "--no-cache", "--exit-zero", "--quiet", "--statistics", "--output-format", "json")
    done = subprocess.run(
        [ruff, "check", *options, "--", path],
        check=True,
        capture_output=True,
        env={**os.environ, "RAYON_NUM_THREADS": "1"},  # the runs share the cores already
        timeout=RUFF_SECONDS,
    )
    found = json.loads(done.stdout or "[]")
    return {each["code"] or each["name"]: each["count"] for each in found}
