"""What a backup says of itself, and how it is read: strictly, for what it says decides what is restored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testigo.errors import BackupInvalid

__all__ = ["BLOBS", "FORMAT", "MANIFEST", "Manifest", "TableCopy", "digest_of_names", "table_file"]

FORMAT = 1
MANIFEST = "manifest.json"
BLOBS = "blobs"


@dataclass(frozen=True, slots=True)
class TableCopy:
    """A table's rows: `bytes` and `digest` are those of the text that COPY writes, before it is compressed."""

    name: str
    columns: tuple[str, ...]
    rows: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup: when it was taken, of what, and what is in it.

    `taken_at` is the server's time of the snapshot in ISO 8601. `blobs` are in it, `blobs_digest` is over their names;
    `missing` and `corrupt` are digests of blobs that could not be copied, of which rows tell or that lay there.
    """

    testigo: str
    schema_version: str
    server: str
    schema: str
    installation: str
    taken_at: str
    tables: tuple[TableCopy, ...]
    blobs: int
    blob_bytes: int
    blobs_digest: str
    missing: tuple[str, ...]
    corrupt: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)

    def to_text(self) -> str:
        """Its file."""
        return json.dumps({"v": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """The manifest of the backup in a folder; raises `BackupInvalid`."""
        try:
            told = json.loads((directory / MANIFEST).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise BackupInvalid(f"There is no manifest of a backup in {directory}: {error}.", field=MANIFEST) from error
        if not isinstance(told, dict) or told.get("v") != FORMAT:
            raise BackupInvalid(
                f"The backup in {directory} is of a format that is not known here.", field="v", limit=str(FORMAT)
            )
        try:
            return _manifest(told)
        except (KeyError, TypeError, ValueError) as error:
            raise BackupInvalid(f"The manifest in {directory} is not whole: {error}.", field=MANIFEST) from error


def table_file(directory: Path, name: str) -> Path:
    """Where the rows of a table lie."""
    return directory / "tables" / f"{name}.copy.gz"


def digest_of_names(digests: Iterable[str]) -> str:
    """A digest over the names of blobs, in their order."""
    taken = hashlib.sha256()
    for digest in digests:
        taken.update(f"{digest}\n".encode())
    return f"sha256:{taken.hexdigest()}"


def _manifest(told: Mapping[str, Any]) -> Manifest:
    texts = ("testigo", "schema_version", "server", "schema", "installation", "taken_at", "blobs_digest")
    return Manifest(
        **{name: _is(told[name], str) for name in texts},
        tables=tuple(_table(each) for each in _is(told["tables"], list)),
        blobs=_is(told["blobs"], int),
        blob_bytes=_is(told["blob_bytes"], int),
        missing=tuple(_is(each, str) for each in _is(told["missing"], list)),
        corrupt=tuple(_is(each, str) for each in _is(told["corrupt"], list)),
    )


def _table(told: Any) -> TableCopy:
    name = _is(told["name"], str)
    if "/" in name or "\x00" in name:
        raise ValueError(f"no table is called {name!r}")
    return TableCopy(
        name,
        tuple(_is(each, str) for each in _is(told["columns"], list)),
        _is(told["rows"], int),
        _is(told["bytes"], int),
        _is(told["digest"], str),
    )


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")
    return value
