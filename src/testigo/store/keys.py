"""The installation's secrets: a folder that only its owner can read, of files that never change.

The folder is named by `TESTIGO_KEYS`, else it is `keys` beside the embedded data. What others could
have read or exchanged is refused, not repaired: a key that leaked stays leaked after a chmod.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import Invalid, KeysUnusable
from testigo.rules import fields

__all__ = ["KEYS_VARIABLE", "SECRET_BYTES_MAX", "SECRET_BYTES_MIN", "Keyring", "keys_directory"]

KEYS_VARIABLE = "TESTIGO_KEYS"
SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 1024

_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")


def keys_directory(beside: Path) -> Path:
    """The folder of keys: what `TESTIGO_KEYS` names, else `keys` in the directory of the embedded server."""
    named = os.environ.get(KEYS_VARIABLE)
    return Path(named) if named else beside / "keys"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The folder of keys. It holds no key in memory, so its repr shows none."""

    directory: Path

    @classmethod
    def open(cls, directory: Path) -> Keyring:
        """The keys in `directory`, which is made, with mode 0700, if it is not there.

        Raises KeysUnusable if the folder is a symbolic link, another account's, or open to others,
        or cannot be made.
        """
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        except (OSError, ValueError) as error:
            raise KeysUnusable(f"{str(directory)!r} cannot be made: {error}.") from error
        keyring = cls(directory)
        with keyring._opened():
            return keyring

    def secret(self, name: str, size: int = 32) -> bytes:
        """The `size` random bytes of that name: made by the first who asks, the same for everybody ever after.

        Two processes that ask at once get the same bytes, and bytes that were returned are on disk.
        Raises Invalid for a name that is not 1 to 64 lower-case letters, digits and hyphens, or a size
        outside 16 to 1024; KeysUnusable for a file that is a symbolic link, another account's, open
        to others, or not of that size.
        """
        given: object = name
        if not isinstance(given, str) or not _NAME.fullmatch(given):
            raise Invalid("A secret's name is a letter and up to 63 letters, digits and hyphens.", field="name")
        fields.whole(size, field="size", low=SECRET_BYTES_MIN, high=SECRET_BYTES_MAX)
        with self._opened() as folder:
            try:
                found = self._read(folder, name)
                if found is None:
                    _make(folder, name, secrets.token_bytes(size))
                    found = self._read(folder, name)
            except OSError as error:
                raise KeysUnusable(f"The key {name} in {self.directory} cannot be used: {error.strerror}.") from error
        if found is None or len(found) != size:
            raise KeysUnusable(
                f"The key {name} in {self.directory} has not the {size} bytes that it shall have.",
                remedy="Restore it from a backup; what was made with it cannot be read or checked with another.",
            )
        return found

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the folder, so that what was checked is what is used."""
        try:
            folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise KeysUnusable(f"{self.directory} is not a folder that can be opened: {error.strerror}.") from error
        try:
            _check(os.fstat(folder), str(self.directory))
            yield folder
        finally:
            os.close(folder)

    def _read(self, folder: int, name: str) -> bytes | None:
        # O_NONBLOCK: a pipe in a key's place would otherwise be waited for.
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            _check(found, f"{self.directory / name}")
            if found.st_nlink > 1:
                # Its maker has linked it and may not yet have made the link durable, or was killed before that.
                os.fsync(folder)
            return file.read(SECRET_BYTES_MAX + 1) if stat.S_ISREG(found.st_mode) else b""


def _make(folder: int, name: str, value: bytes) -> None:
    """Write the key under another name, then link it to its own unless somebody was quicker. It is never half there."""
    new = f".{name}.{secrets.token_hex(8)}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.fsync(folder)
    finally:
        os.unlink(new, dir_fd=folder)


def _check(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise KeysUnusable(f"{what} belongs to uid {found.st_uid}, and this process runs as uid {os.geteuid()}.")
    if found.st_mode & 0o077:
        raise KeysUnusable(
            f"{what} has mode {stat.S_IMODE(found.st_mode):04o}: accounts other than its owner may use it.",
            remedy="Take the right from them, and make the keys anew if somebody may have read them.",
        )
