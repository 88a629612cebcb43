"""Bytes kept under their own digest, in a directory: what is too large for a row, written once and verified on read.

    incoming/<random>   what is being written
    sha256/ab/cd…       what was put: the first two digits of its digest, then the rest

A blob is whole or absent. A writer that dies leaves a file in `incoming`, which `sweep` removes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from testigo.errors import BlobCorrupt, BlobsUnusable, Invalid, NotFound

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["BLOBS_VARIABLE", "Blob", "BlobStore", "blobs_directory"]

BLOBS_VARIABLE = "TESTIGO_BLOBS"
CHUNK_BYTES = 256 * 1024

_DIGEST = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")


def blobs_directory(beside: Path) -> Path:
    """The folder of blobs: what `TESTIGO_BLOBS` names, else `blobs` among the installation's own files."""
    named = os.environ.get(BLOBS_VARIABLE)
    return Path(named) if named else beside / "blobs"


@dataclass(frozen=True, slots=True)
class Blob:
    """What names a blob, `sha256:` and 64 hexadecimal digits, and its size in bytes."""

    digest: str
    size: int


class BlobStore:
    """The blobs of one directory, made when the first is put. Any number of threads and processes may share it.

    A digest that is not written as `Blob.digest` is raises Invalid; one that is not there, NotFound;
    one in whose place lies a link or what else is no file, BlobCorrupt. A directory that cannot be
    written or read, because its disk is full for example, raises BlobsUnusable. (issue 2)
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._incoming = directory / "incoming"
        self._kept = directory / "sha256"

    def put(self, source: bytes | BinaryIO) -> Blob:
        """Keep the bytes, or what a binary stream yields from where it stands to its end.

        When it returns they are on disk. A blob that is there already is written again: with the same
        bytes if it is sound, repaired if it is not. The memory that it takes does not depend on the
        size. What the stream raises is passed on, and nothing is kept.
        """
        stream = io.BytesIO(source) if isinstance(source, bytes) else source
        if not hasattr(stream, "read"):
            raise Invalid("A blob is put as bytes or from a binary stream.", field="source")
        with _usable(self._directory):
            _make(self._directory, self._incoming, self._kept)
            new = self._incoming / secrets.token_hex(16)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                blob = self._write(stream, descriptor)
            finally:
                os.close(descriptor)
            with _usable(self._directory):
                path = self._path(blob.digest)
                _make(path.parent)
                new.rename(path)
                # The folders may be another writer's who has made them and not yet synced them.
                for folder in (path.parent, self._kept, self._directory):
                    _sync(folder)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
        return blob

    def open(self, digest: str) -> BinaryIO:
        """A stream of the blob, to be closed by its reader; a context manager.

        Whoever reads to the end has verified bytes: the read that would yield the last of them raises
        BlobCorrupt if they are not those that were put. Until then they are what the disk says.
        """
        descriptor, size = self._found(digest)
        return io.BufferedReader(_Verified(self._directory, digest, descriptor, size), CHUNK_BYTES)

    def read(self, digest: str) -> bytes:
        """The bytes of the blob, all of them, verified; BlobCorrupt if they have changed."""
        with self.open(digest) as stream:
            return stream.read()

    def copy_to(self, digest: str, target: BinaryIO) -> int:
        """Write the blob into a buffered binary stream and return its size, in memory that does not depend on it.

        Raises BlobCorrupt before the last bytes are written; the target then holds bytes that are
        worth nothing.
        """
        copied = 0
        with self.open(digest) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                target.write(chunk)
                copied += len(chunk)
        return copied

    def digests(self) -> Iterator[str]:
        """What is there, in order of the digests: of each folder, what it held when it was come to."""
        with _usable(self._directory):
            for folder in sorted(self._kept.iterdir()) if self._kept.exists() else ():
                for path in sorted(folder.iterdir()):
                    digest = f"sha256:{folder.name}{path.name}"
                    if _DIGEST.fullmatch(digest):
                        yield digest

    def exists(self, digest: str) -> bool:
        """Whether there is such a blob, sound or not."""
        try:
            self.size(digest)
        except NotFound:
            return False
        return True

    def size(self, digest: str) -> int:
        """The blob's size in bytes, as it is on disk, not verified."""
        descriptor, size = self._found(digest)
        os.close(descriptor)
        return size

    def delete(self, digest: str) -> None:
        """Remove the blob for good. Who has it open may read on."""
        path = self._path(digest)
        with _usable(self._directory):
            try:
                path.unlink()
            except FileNotFoundError:
                raise _missing(digest) from None
            _sync(path.parent)

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what writers that died have left, and say how many files that were.

        A file counts by the time of its last write; a living writer whose stream paused for longer
        loses its file, and its `put` raises BlobsUnusable.
        """
        age: object = older_than_seconds
        if isinstance(age, bool) or not isinstance(age, int | float) or not age >= 0:
            raise Invalid("An age is a number, and not negative.", field="older_than_seconds", limit="0 or more")
        before = time.time() - older_than_seconds
        swept = 0
        with _usable(self._directory):
            for left in self._incoming.iterdir() if self._incoming.exists() else ():
                with suppress(FileNotFoundError):
                    if left.lstat().st_mtime <= before:
                        left.unlink()
                        swept += 1
        return swept

    def _path(self, digest: str) -> Path:
        given: object = digest
        parts = _DIGEST.fullmatch(given) if isinstance(given, str) else None
        if parts is None:
            raise Invalid(
                "A blob is named by its digest.", field="digest", limit="sha256: and 64 lower-case hexadecimal digits"
            )
        return self._kept / parts[1] / parts[2]

    def _found(self, digest: str) -> tuple[int, int]:
        """An open descriptor of the blob, and its size; a link or what else is no file in its place is corrupt."""
        path = self._path(digest)
        with _usable(self._directory):
            try:
                # O_NONBLOCK: a pipe in a blob's place would otherwise be waited for.
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                raise _missing(digest) from None
            except OSError as error:
                if path.is_symlink():
                    raise _corrupt(digest) from error
                raise
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise _corrupt(digest)
        return descriptor, found.st_size

    def _write(self, stream: BinaryIO, descriptor: int) -> Blob:
        taken, size = hashlib.sha256(), 0
        while chunk := stream.read(CHUNK_BYTES):
            if not isinstance(chunk, bytes):
                raise Invalid("A blob is made of bytes.", field="source", remedy="Open the file in binary mode.")
            taken.update(chunk)
            size += len(chunk)
            rest = memoryview(chunk)
            with _usable(self._directory):
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
        with _usable(self._directory):
            os.fsync(descriptor)
        return Blob(f"sha256:{taken.hexdigest()}", size)


class _Verified(io.RawIOBase):
    """The file of a blob; the read that reaches its end compares digests before it yields anything."""

    def __init__(self, directory: Path, digest: str, descriptor: int, size: int) -> None:
        self._directory = directory
        self._digest = digest
        self._file = io.FileIO(descriptor)
        self._left = size
        self._taken = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")[: self._left]
        with _usable(self._directory):
            count = self._file.readinto(view)
        self._taken.update(view[:count])
        # A file that was cut while it was read ends before its size.
        self._left = self._left - count if count or not view else 0
        if not self._left and f"sha256:{self._taken.hexdigest()}" != self._digest:
            raise _corrupt(self._digest)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _usable(directory: Path) -> Iterator[None]:
    """Say of which directory the system's error tells."""
    try:
        yield
    except OSError as error:
        raise BlobsUnusable(f"The blobs in {directory} cannot be used: {error}.") from error


def _make(*folders: Path) -> None:
    for folder in folders:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _missing(digest: str) -> NotFound:
    return NotFound(f"There is no blob {digest}.", remedy="Check the digest; the blob may have been deleted.")


def _corrupt(digest: str) -> BlobCorrupt:
    return BlobCorrupt(f"The bytes kept as {digest} are not those that were put.")
