"""Checks of this machine: its clock against the server's, and the disk of an embedded server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.cli.doctor.findings import Finding, Level
from testigo.cli.written import size
from testigo.store.sql import Statement

__all__ = ["clocks", "disk"]

APART_SECONDS_MAX = 2.0
"""By which two clocks may differ before somebody wonders about the times that are shown."""
JUMP_SECONDS_MAX = 0.5
FREE_BYTES_MIN = 1024**3
APART_SECONDS = 0.2
"""Between two reads of the server's clock."""

_NOW = Statement("SELECT clock_timestamp() AS at")


def clocks(c: Connection) -> Iterator[Finding]:
    """A clock here that is apart from the server's, and a server's clock that jumps."""
    here = datetime.now(UTC)
    first = _read(c)
    apart = (first.at - here).total_seconds()
    if not -APART_SECONDS_MAX <= apart <= first.received - first.sent + APART_SECONDS_MAX:
        yield Finding(
            "CLOCKS_APART",
            Level.WARNING,
            f"This machine's clock and the server's are {abs(apart):,.1f} s apart.",
            "No lease hangs on a clock; but times that are asked for (run_at, finish_by) are the server's, and an "
            "action that looks older than the kept receipts is refused.",
            "Let both follow a time server (systemctl status chrony, or systemd-timesyncd).",
            {"seconds": apart},
        )
    time.sleep(APART_SECONDS)
    second = _read(c)
    passed = (second.at - first.at).total_seconds()
    # Between the two moments at which it was read passed at least and at most:
    least, most = second.sent - first.received, second.received - first.sent
    jump = min(0.0, passed - least) or max(0.0, passed - most)
    if abs(jump) > JUMP_SECONDS_MAX:
        yield Finding(
            "CLOCK_JUMPS",
            Level.WARNING,
            f"The server's clock moved by {jump:+,.1f} s between two reads.",
            "It is being set, or a pooler leads to servers with different clocks: promotions and deadlines come "
            "early or late.",
            "Let the server's clock be slewed, not stepped; let a pooler lead to one server.",
            {"seconds": jump},
        )


def disk(directory: Path, *, free_bytes_min: int = FREE_BYTES_MIN) -> Iterator[Finding]:
    """A disk that an embedded server will soon have filled."""
    free = shutil.disk_usage(directory).free
    if free < free_bytes_min:
        yield Finding(
            "DISK_NEARLY_FULL",
            Level.WARNING,
            f"The disk of {directory} has {size(free)} left.",
            "A server that cannot write stops, and with it every submit and settle.",
            "Free some, prune jobs sooner (`testigo jobs prune --older-than-days 7`), or move the directory.",
            {"directory": str(directory), "free_bytes": free},
        )


class _Read(NamedTuple):
    """The server's clock, and when it was asked for and told by ours, which is monotonic."""

    sent: float
    at: datetime
    received: float


def _read(c: Connection) -> _Read:
    sent = time.monotonic()
    at = _NOW.rows(c)[0].at
    return _Read(sent, at, time.monotonic())
