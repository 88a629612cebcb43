"""Where a demo's work is kept, and how a command is led there."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from testigo.settings import STORE

if TYPE_CHECKING:
    from testigo.cli.call import Call

__all__ = ["Place", "placed"]

SCHEMA_ELSEWHERE = "testigo_demo"
"""On a server of the user's own, the demo keeps apart from what is there."""


class Place(NamedTuple):
    """The demo's installation; one that does not stay is gone when the demo has ended."""

    url: str
    schema: str
    stays: bool
    """Whether it is there after the demo, or the demo itself stays."""
    goes_with_demo: bool

    @property
    def database(self) -> str | None:
        """Where the database can be looked at, fit to be shown; None where it is gone."""
        from testigo.store.urls import shown

        return shown(self.url) if self.stays else None

    @property
    def options(self) -> str:
        """What leads a command to it."""
        schema = "" if self.schema == STORE.schema else f" --schema {shlex.quote(self.schema)}"
        return f"--url {shlex.quote(self.url)}{schema}"


@contextmanager
def placed(here: Call, data: Path | None, *, stay: bool) -> Iterator[Place]:
    """The installation that was asked for; a temporary one is gone afterwards."""
    if here.url is not None:
        yield Place(here.url, here.schema or SCHEMA_ELSEWHERE, stays=True, goes_with_demo=False)
        return
    schema = here.schema or STORE.schema
    if data is not None:
        yield Place(f"embedded:{data.absolute()}", schema, stays=True, goes_with_demo=False)
        return
    folder = tempfile.mkdtemp(prefix="testigo-demo-")
    try:
        yield Place(f"embedded:{folder}", schema, stays=stay, goes_with_demo=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
