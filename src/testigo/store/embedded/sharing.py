"""Who uses the server of a directory, and who of them starts and stops it (spec P-31).

Every process that uses a server holds the lock `users` together with the others; the kernel takes
it from a process that is killed. Joining and leaving happen behind one door, the lock `door`. Who
leaves tries to hold `users` alone: the one who can is the last and stops the server. A process that
is killed stops nothing; whoever comes next joins the server that it left.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import EmbeddedUnusable, Error
from testigo.settings import EMBEDDED
from testigo.store.embedded.folder import take_folder, unusable_folder
from testigo.store.embedded.locks import FileLock
from testigo.store.embedded.postmaster import Postmaster

__all__ = ["Seat", "join", "leave"]

logger = logging.getLogger(__name__)

DOOR_SECONDS = 3 * EMBEDDED.start_seconds
"""Longer than one process may take behind the door: to make a data directory, to start, to stop."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One use of a server by this process: its directory, the folder of its socket, whose seat it is."""

    directory: Path
    folder: str
    pid: int


@dataclass(slots=True)
class _Table:
    """All the seats of this process at one server, which count as one user."""

    users: FileLock
    seats: int


_tables: dict[Path, _Table] = {}
_turn = threading.RLock()


def join(directory: Path, starts: Callable[[], object]) -> Seat:
    """Take a seat, starting the server if it does not run. Blocks until it answers; raises EmbeddedUnusable.

    `starts` is called before a start.
    """
    real = take_folder(directory)
    with _turn, _behind_door(real):
        table = _tables.get(real) or _Table(FileLock(real / "users"), seats=0)
        try:
            table.users.share()
            folder = Postmaster(real).ensure(starts)
            _tables[real] = table
            table.seats += 1
        except OSError as error:
            raise unusable_folder(real, error) from error
        except (KeyboardInterrupt, SystemExit):  # it may have begun, and nobody would stop it
            if not table.seats and table.users.try_alone():
                Postmaster(real).break_off()
            raise
        finally:
            if not table.seats:
                table.users.release()
    return Seat(real, folder, os.getpid())


def leave(seat: Seat) -> None:
    """Give up a seat, and stop the server if no process has one any more. Raises nothing; what fails is logged."""
    # A forked child has copies of its parent's seats, which are the parent's to give up.
    if seat.pid != os.getpid():
        return
    with _turn:
        table = _tables.get(seat.directory)
        if table is not None:
            table.seats -= 1
            if not table.seats:
                _stand_up(seat.directory)


def _stand_up(directory: Path) -> None:
    users = _tables[directory].users
    try:
        with _behind_door(directory):
            if users.try_alone():
                Postmaster(directory).stop()
    except (Error, OSError) as error:
        logger.warning("the embedded server on %s may have been left running: %s", directory, error)
    finally:
        users.release()
    del _tables[directory]  # what was interrupted is done at the interpreter's exit


@contextlib.contextmanager
def _behind_door(directory: Path) -> Iterator[None]:
    door = FileLock(directory / "door")
    if not door.alone(DOOR_SECONDS):
        raise EmbeddedUnusable(
            f"Another process has been starting or stopping the server on {directory} for {DOOR_SECONDS:g} s.",
            remedy="End that process (fuser names it, given the file `door` in the directory) and try again.",
        )
    try:
        yield
    finally:
        door.release()


def _leave_all() -> None:
    with _turn:
        for directory in list(_tables):
            _stand_up(directory)


def _forget_all() -> None:
    """In a forked child: nothing here is its own, nor is the thread that may have held the turn."""
    global _turn
    _tables.clear()
    _turn = threading.RLock()


atexit.register(_leave_all)
os.register_at_fork(after_in_child=_forget_all)
