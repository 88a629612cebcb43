"""Where results lie until they are acknowledged: a private folder, in memory where there is room, gone with its server.

    <base>/testigo-analyser-<uid>/            0700, ours
        <32 hexadecimal digits>/              one for each server that runs here
            mark                              says whose it is; locked while its server lives
            <run>/                            what one run needs and leaves

It is no durable storage: a server that starts removes what others left that are gone, which it knows by name, owner,
mark and lock (spec D-12).
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from testigo.errors import Broken, StoragePressure

__all__ = ["CAPACITY_BYTES", "Spool", "size_of"]

CAPACITY_BYTES = 2 * 1024**3
"""What all results, and the work on them, may take together."""

MARK = b"testigo analyser spool 1\n"
_SERVER = re.compile(r"[0-9a-f]{32}")
_NEW = ".new-"
_MEMORY = (Path("/dev/shm"),)  # noqa: S108


@dataclass
class Spool:
    """The folder of one server, and how much of its capacity is spoken for."""

    folder: Path
    in_memory: bool
    capacity_bytes: int
    _mark: int
    _spoken_for: dict[str, int] = field(default_factory=dict)
    _unsettled: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, named: Path | None = None, *, capacity_bytes: int = CAPACITY_BYTES) -> Spool:
        """A new folder in the base that is `named`, else in memory where that has room, else in the temporary folder.

        Raises `Broken` for a base that is not ours alone.
        """
        parent = _parent(capacity_bytes) if named is None else named
        base = parent / f"testigo-analyser-{os.getuid()}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            base.mkdir(mode=0o700, exist_ok=True)
            found = base.lstat()
        except OSError as error:
            raise Broken(f"The spool {base} cannot be made: {error.strerror}.", field="spool") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise Broken(
                f"The spool {base} is a link, another account's, or open to others.",
                field="spool",
                remedy="Remove it, or name another place with --spool.",
            )
        _sweep(base)
        try:
            return cls._made(base, _in_memory(base), capacity_bytes)
        except OSError as error:
            raise Broken(f"The spool {base} takes no folder: {error.strerror}.", field="spool") from error

    @classmethod
    def _made(cls, base: Path, in_memory: bool, capacity_bytes: int) -> Spool:
        """The folder is locked before it is marked, by which others know it, and only then has its final name."""
        name = secrets.token_hex(16)
        new = base / f"{_NEW}{name}"
        with ExitStack() as left:
            new.mkdir(mode=0o700)
            left.callback(shutil.rmtree, new, ignore_errors=True)
            mark = os.open(new / "mark", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            left.callback(os.close, mark)
            fcntl.flock(mark, fcntl.LOCK_EX)
            os.write(mark, MARK)
            new.rename(base / name)
            left.pop_all()
        return cls(base / name, in_memory, capacity_bytes, mark)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            os.close(self._mark)

    def take(self, run: str, size: int) -> Path:
        """The new folder of a run that may take `size` bytes. Raises `StoragePressure` where that is not free.

        Nothing that is there makes way. Raises `Broken` where the system makes no folder; then nothing is taken.
        """
        folder = self.folder / run
        try:
            self._speak_for(run, size)
            folder.mkdir(mode=0o700)
        except OSError as error:
            self.drop(run)
            raise Broken(f"The spool has no folder for a run: {error.strerror}.", field="spool") from error
        return folder

    def settle(self, run: str) -> None:
        """From now on a run takes what its folder holds."""
        size = size_of(self.folder / run)
        with self._lock:
            if run in self._spoken_for:
                self._spoken_for[run] = size
                self._unsettled.discard(run)

    def drop(self, run: str) -> None:
        """Remove the folder of a run."""
        shutil.rmtree(self.folder / run, ignore_errors=True)
        with self._lock:
            self._spoken_for.pop(run, None)
            self._unsettled.discard(run)

    def _speak_for(self, run: str, size: int) -> None:
        with self._lock:
            used = sum(self._spoken_for.values())
            to_come = sum(self._spoken_for[run] for run in self._unsettled)
            free = min(self.capacity_bytes - used, shutil.disk_usage(self.folder).free - to_come)
            if size > free:
                raise StoragePressure(
                    f"The spool has {max(0, free)} bytes left, and a run needs {size}.",
                    limit=f"{self.capacity_bytes} bytes",
                )
            self._spoken_for[run] = size
            self._unsettled.add(run)


def size_of(folder: Path) -> int:
    """What all files below a folder take, as disks count it; what goes away meanwhile takes nothing."""
    size = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    size += size_of(Path(entry.path))
    return size


def _parent(capacity_bytes: int) -> Path:
    """The place in memory that has room for everything; else the temporary folder, which may be a disk's."""
    for place in _MEMORY:
        with suppress(OSError):
            if _in_memory(place) and os.access(place, os.W_OK) and shutil.disk_usage(place).free >= capacity_bytes:
                return place
    return Path(tempfile.gettempdir())


def _in_memory(folder: Path) -> bool:
    """Whether the folder is on a tmpfs; only Linux tells."""
    best, kind = "", ""
    with suppress(OSError):
        path = str(folder.resolve())
        for line in Path("/proc/mounts").read_text("utf-8", errors="replace").splitlines():
            _, place, found, *_ = line.split(" ")
            if (path == place or path.startswith(place.rstrip("/") + "/")) and len(place) >= len(best):
                best, kind = place, found
    return kind == "tmpfs"


def _sweep(base: Path) -> None:
    """Remove the folders of servers that are gone."""
    for entry in list(base.iterdir()):
        if _SERVER.fullmatch(entry.name.removeprefix(_NEW)) and _is_left(entry):
            shutil.rmtree(entry, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Whether the folder is one of ours, and no server lives that has it."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode) or folder.lstat().st_uid != os.getuid():
            return False
        mark = os.open(folder / "mark", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(mark, len(MARK) + 1) == MARK
    except OSError:
        return False
    finally:
        os.close(mark)
