"""What some tests need of the machine, and what becomes of them where it is lacking.

A test says what it needs with a marker. On a user's machine the tests whose need is not met are
deselected and named at the end of the run; with TESTIGO_CI=1 the run refuses to start instead, so
that nothing goes untested in silence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.browser.chromium import chromium_program
from tests.faketime import faketime_library
from tests.services import pgbouncer_binary, postgres15_bindir

__all__ = ["NEEDS", "Need", "deselect_unmet", "shared_data", "unmet"]


@dataclass(frozen=True, slots=True)
class Need:
    """A marker's name, what it stands for, why that may be lacking, the remedy, and whether it is here."""

    marker: str
    what: str
    why: str
    remedy: str
    is_met: Callable[[], bool]


def in_ci() -> bool:
    """Whether everything must be there and every test must run."""
    return os.environ.get("TESTIGO_CI") == "1"


def shared_data() -> Path | None:
    """The folder of reports and cases that the environment variable TESTIGO_SHARED names."""
    named = os.environ.get("TESTIGO_SHARED")
    return Path(named) if named and Path(named).is_dir() else None


def may_mount() -> bool:
    """Whether a small disk can be mounted in a namespace of a test's own."""
    unshare = shutil.which("unshare")
    mount = [unshare or "", "--mount", "sh", "-c", "mount -t tmpfs -o size=8m none /mnt"]
    return unshare is not None and subprocess.run(mount, capture_output=True, check=False).returncode == 0


NEEDS = (
    Need(
        "needs_postgres15",
        "PostgreSQL 15",
        "which is not installed",
        "apt install postgresql-15",
        lambda: postgres15_bindir() is not None,
    ),
    Need(
        "needs_pgbouncer",
        "pgbouncer",
        "which is not installed",
        "apt install pgbouncer",
        lambda: pgbouncer_binary() is not None,
    ),
    Need(
        "needs_faketime",
        "libfaketime",
        "which is not installed",
        "apt install libfaketime",
        lambda: faketime_library() is not None,
    ),
    Need(
        "needs_node",
        "Node.js",
        "which pyright runs on and is not installed",
        "apt install nodejs",
        lambda: shutil.which("node") is not None,
    ),
    Need(
        "needs_chromium",
        "Chromium",
        "which is not installed, nor named by $CHROMIUM",
        "apt install chromium",
        lambda: chromium_program() is not None,
    ),
    Need("needs_linux", "Linux", "which this is not", "run it there, too", lambda: sys.platform == "linux"),
    Need("needs_root", "root", "who alone can arrange it", "run it as root, too", lambda: os.geteuid() == 0),
    Need(
        "needs_mount",
        "leave to mount",
        "which is not given here",
        "run it as root with CAP_SYS_ADMIN",
        may_mount,
    ),
    Need(
        "needs_shared_data",
        "the project's case data",
        "which is not published",
        "TESTIGO_SHARED names its folder",
        lambda: shared_data() is not None,
    ),
    Need(
        "needs_package_index",
        "a package index",
        "which is asked only when everything is tested",
        "TESTIGO_CI=1",
        in_ci,
    ),
)


def unmet() -> list[Need]:
    """The needs that this machine does not meet."""
    return [need for need in NEEDS if not need.is_met()]


def deselect_unmet(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[str]]:
    """Take the tests with an unmet need out of `items`; returns them, and a line for each such need."""
    missing = {need.marker: need for need in unmet()}
    counts: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        lacks = [marker for marker in missing if item.get_closest_marker(marker)]
        counts.update(lacks)
        (deselected if lacks else kept).append(item)
    items[:] = kept
    return deselected, [_line(count, missing[marker]) for marker, count in counts.items()]


def _line(count: int, need: Need) -> str:
    tests = "1 test needs" if count == 1 else f"{count} tests need"
    return f"deselected: {tests} {need.what}, {need.why}: {need.remedy}"
