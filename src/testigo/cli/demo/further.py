"""How whoever has seen the demo goes on: where its database is, how to look at it, what to try next."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testigo.cli.demo.place import Place

__all__ = ["called", "further"]


def called() -> str:
    """How this program is called from here."""
    if shutil.which("testigo"):
        return "testigo"
    own = sys.argv[0]
    return f"{sys.executable} -m testigo" if own.endswith("__main__.py") else own


def further(place: Place, program: str, *, demo: str, listed: str, then: str, stays: bool) -> str:
    """What `program` does next: `demo` is what was called, `listed` what lists its work, `then` what else to try.

    A demo that `stays` opens the panel by itself.
    """
    if not place.stays:
        return (
            "The database is gone; --data DIR keeps it. See it in the panel:\n"
            f"{program} {demo} --stay\nGo on: {program} {then}"
        )
    there = "The database is there until Ctrl-C" if place.goes_with_demo else "The database is kept"
    panel = "" if stays else f"\nor in the panel with\n{program} serve {place.options}"
    return f"{there}: look at it with\n{program} {listed} {place.options}{panel}"
