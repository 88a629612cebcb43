"""Where the server of a directory is met: the folder of its socket, and its process.

Both are remembered in `server.json`, written by whoever holds the door. The folder has a short
name whatever the directory's, for the path of a socket stays below 104 bytes on macOS and 107 on
Linux. Its name is random, so that nobody can take it beforehand, and it stays when a server that
was killed is started again, so that its users meet the new one where they met the old.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from testigo.errors import EmbeddedUnusable
from testigo.store.embedded.account import Account
from testigo.store.embedded.processes import Process

__all__ = ["PORT", "Address", "forget", "recall", "remember", "take_address"]

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
SOCKET_BYTES_MAX = 103


@dataclass(frozen=True, slots=True)
class Address:
    """The folder of the socket, and the server's process once it was seen to answer."""

    folder: str
    process: Process | None = None


def take_address(file: Path, account: Account) -> Address:
    """For a server that starts: the remembered folder if it can still be trusted, else a new one; no process yet.

    A killed server's socket is removed. PostgreSQL would do that too, unless the pid beside it is
    known to the system: given to another process, or not yet reaped.
    """
    found = recall(file)
    if found is not None and _is_private(Path(found.folder), account):
        address = Address(found.folder)
        _remove_sockets(Path(found.folder))
    else:
        address = Address(_make_folder(account))
    remember(file, address)
    return address


def recall(file: Path) -> Address | None:
    """The address that was remembered, or None; also where a machine lost its power before its bytes were on disk."""
    try:
        found = json.loads(file.read_bytes())
        return Address(found["folder"], Process(**found["process"]) if found["process"] else None)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def remember(file: Path, address: Address) -> None:
    """Replace what is remembered; a reader sees the old or the new."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps(asdict(address)))
    new.replace(file)


def forget(file: Path) -> None:
    """The server is gone: remove its socket's folder, with what it may have left in it, and the memory of it."""
    found = recall(file)
    if found is not None:
        folder = Path(found.folder)
        with contextlib.suppress(OSError):
            _remove_sockets(folder)
            folder.rmdir()
        file.unlink()


def _is_private(folder: Path, account: Account) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid and not found.st_mode & 0o077


def _remove_sockets(folder: Path) -> None:
    for left in (SOCKET, f"{SOCKET}.lock"):
        (folder / left).unlink(missing_ok=True)


def _make_folder(account: Account) -> str:
    # The system's temporary folder follows TMPDIR and may be long; /tmp is short wherever it exists.
    for parent in ("/tmp", tempfile.gettempdir()):  # noqa: S108 - made by mkdtemp, which is safe there
        try:
            folder = Path(tempfile.mkdtemp(prefix=f"testigo-{account.uid}-", dir=parent))
        except OSError:
            continue
        if len(os.fsencode(folder / SOCKET)) <= SOCKET_BYTES_MAX:
            account.give(folder)
            return str(folder)
        folder.rmdir()
    raise EmbeddedUnusable(
        f"No folder for the server's socket can be made in /tmp or {tempfile.gettempdir()}.",
        remedy="Set TMPDIR to a writable folder with a short path.",
    )
