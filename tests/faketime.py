"""A wall clock that a test moves, for processes of its own: libfaketime, preloaded.

    with faked_clock(folder / "clock") as clock:
        start_something(environment=clock.environment)
        clock.move(-3600)

Only the wall clock is moved. The clocks that count from the boot are as they are, as on a machine
whose time somebody sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Clock", "faked_clock", "faketime_library"]


def faketime_library() -> Path | None:
    """The library for programs with threads, or None."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


class Clock:
    """The wall clock of whatever was started with its environment. A test that uses it is marked `needs_faketime`."""

    def __init__(self, file: Path) -> None:
        """`file` is read again and again by those processes, under whatever account they run."""
        library = faketime_library()
        assert library is not None, "mark the test needs_faketime"
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        self.move(0)

    def move(self, seconds: int) -> None:
        """Let it show so many seconds more than the true time, from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n", "ascii")
        new.chmod(0o644)
        new.replace(self._file)


@contextmanager
def faked_clock(file: Path) -> Iterator[Clock]:
    """A clock; what its processes could not put away because they were killed is put away at the end."""
    yield Clock(file)
    for left in Path("/dev/shm").glob("*faketime_s*_*"):
        pid = left.name.rpartition("_")[2]
        if not Path("/proc", pid).exists():
            left.unlink(missing_ok=True)
