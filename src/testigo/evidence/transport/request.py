"""What an analyser is asked: files of one tree, by name, and options of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from testigo.errors import Invalid
from testigo.evidence.transport import wire
from testigo.rules.evidence.paths import why_not_canonical
from testigo.rules.identity import canonical, content_digest

__all__ = ["FILES_MAX", "REQUEST_BYTES_MAX", "Request"]

REQUEST_BYTES_MAX = 4 * 1024**2
FILES_MAX = 20_000
OPTIONS_MAX = 32
OPTION_CHARS_MAX = 4096

_MEMBERS = frozenset({"v", "analyser", "root", "files", "options"})
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ANALYSER = re.compile(r"[a-z][a-z0-9_-]{0,63}(?::[a-z0-9._+-]{1,64})?")


@dataclass(frozen=True)
class Request:
    """One run of one analyser. `root` is absolute where the server runs; `files` are canonical paths in it, sorted."""

    analyser: str
    root: str
    files: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The request digest: the same for whoever asks the same (spec D-06)."""
        return content_digest(canonical(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object."""
        return {
            "v": wire.VERSION,
            "analyser": self.analyser,
            "root": self.root,
            "files": list(self.files),
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, value: object) -> Request:
        """The request that a JSON object is. Raises `Invalid` naming the member and its limit."""
        if not isinstance(value, dict):
            raise Invalid("a JSON object is needed", field="request")
        wire.members(value, _MEMBERS, _refused)
        root, files, options = value["root"], value["files"], value["options"]
        if not isinstance(root, str) or "\0" in root or not PurePosixPath(root).is_absolute():
            raise Invalid("an absolute path is needed", field="root")
        if not isinstance(files, list) or len(files) > FILES_MAX:
            raise Invalid("a list of paths is needed", field="files", limit=f"{FILES_MAX} files")
        for n, path in enumerate(files):
            if fault := why_not_canonical(path):
                raise Invalid("it is no canonical path", field=f"files[{n}]", reason=str(fault))
        if any(one >= other for one, other in pairwise(files)):
            raise Invalid("the paths are not in order, each once", field="files")
        if not isinstance(options, dict) or len(options) > OPTIONS_MAX:
            raise Invalid("an object of texts is needed", field="options", limit=f"{OPTIONS_MAX} options")
        for name, said in options.items():
            wire.text(name, "options", _refused, pattern=_NAME)
            if not isinstance(said, str) or "\0" in said or len(said) > OPTION_CHARS_MAX:
                raise Invalid("text is needed", field=f"options.{name}", limit=f"{OPTION_CHARS_MAX} characters")
        return cls(wire.text(value["analyser"], "analyser", _refused, pattern=_ANALYSER), root, tuple(files), options)


def _refused(check: str, field: str, why: str) -> Invalid:
    return Invalid(why, field=field, check=check)
