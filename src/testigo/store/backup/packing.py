"""A backup in one file: a tar of its folder, which is packed when it is whole and unpacked before it is read."""

from __future__ import annotations

import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from testigo.errors import BackupInvalid, Broken, Invalid

__all__ = ["SUFFIX", "opened", "packed"]

SUFFIX = ".tar"
"""What the name of such a file ends with."""


@contextmanager
def packed(target: Path) -> Iterator[Path]:
    """Where the folder of a backup is to be written: `target` itself, or one beside it that is then packed into it.

    Raises `Invalid` for a file that is there already, and `Broken` for a disk that cannot be written.
    """
    if target.suffix != SUFFIX:
        yield target
        return
    if target.exists():
        raise Invalid(f"{target} is there already.", field="target", limit="a file that is new")
    new = target.absolute().with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.absolute().parent) as folder:
            yield Path(folder)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                with tarfile.open(fileobj=file, mode="w") as tar:
                    tar.add(folder, arcname=".")
                file.flush()
                os.fsync(file.fileno())
        new.rename(target)
    except OSError as error:
        raise Broken(
            f"{target} cannot be written: {error}.", remedy="See that there is room, and try again."
        ) from error
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The folder of a backup: `source` itself, or one for as long as it takes into which it is unpacked.

    Raises `BackupInvalid` for a file that is no such tar: one with anything but folders and plain files in it, with a
    name that leads elsewhere, or with a name twice.
    """
    if not source.is_file():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="testigo-restore-") as folder:
        try:
            with tarfile.open(source, "r:") as tar:
                for member in tar:
                    _unpack(tar, member, Path(folder))
        except (OSError, ValueError, tarfile.TarError) as error:
            raise BackupInvalid(f"{source} cannot be unpacked: {error}.", field="source") from error
        yield Path(folder)


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Write one member, with none of what a tar may ask for but its bytes; older Pythons have no filter for that."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or member.issparse() or not (member.isdir() or member.isreg()):
        raise ValueError(f"{member.name!r:.200} is no plain file below it")
    target = into / name
    if member.isdir():
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    content = tar.extractfile(member)
    assert content is not None, "a plain file has bytes"
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        shutil.copyfileobj(content, file)
    if target.stat().st_size != member.size:
        raise ValueError(f"{member.name!r:.200} is cut")
