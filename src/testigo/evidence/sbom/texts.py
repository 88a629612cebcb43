"""The texts of a bill of materials, without what is this machine's own business and without secrets."""

from __future__ import annotations

import re
from typing import Any

from testigo.rules.evidence.redaction import hide_named, redact
from testigo.rules.text import tidy

__all__ = ["REMOVED", "Cleaner"]

REMOVED = "local-path-removed"

_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?!git@)[^/\s@?#]*@")
_FILE = re.compile(r"file:/+[^\s\"'<>&#?]*", re.IGNORECASE)
_HOME = re.compile(
    r"(?<![\w./:-])(?:/home/|/Users/|/root/|/tmp/|/var/folders/|[A-Za-z]:[\\/]+Users[\\/]+)[^\s\"'<>&#?]*",
    re.IGNORECASE,
)
_UNTOUCHED = frozenset({"hashes"})
_BYTES_MAX = 64 * 1024**2


class Cleaner:
    """Goes through a document; `changed` counts the texts that it changed.

    Local paths are those below `roots`, in home folders and of `file:` URLs; a path inside an image
    is none. The same text becomes the same everywhere, so references still meet.
    """

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = tuple(sorted({root.rstrip("/") for root in roots} - {""}, key=len, reverse=True))
        self.changed = 0

    def cleaned(self, value: Any) -> Any:
        """`value` with every text in it cleaned, the digests under `hashes` excepted; names stay."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.cleaned(each) for each in value]
        if not isinstance(value, dict):
            return value
        cleaned = {name: each if name in _UNTOUCHED else self.cleaned(each) for name, each in value.items()}
        name, said = cleaned.get("name"), cleaned.get("value")
        if isinstance(name, str) and isinstance(said, str):
            hidden = hide_named(name, said)
            self.changed += hidden != said
            cleaned["value"] = hidden
        return cleaned

    def _text(self, text: str) -> str:
        said = tidy(text, bytes_max=_BYTES_MAX)
        for root in self._roots:
            said = said.replace(f"{root}/", "") if said != root else REMOVED
        said = _USER.sub(r"\1", said)
        said = _FILE.sub(f"file:///{REMOVED}", said)
        said = redact(_HOME.sub(REMOVED, said))
        self.changed += said != text
        return said
