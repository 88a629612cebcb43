"""Where a result is: from a URI, base ids and indices to one canonical path inside the tree (field case R81).

How a URI is read is `testigo.rules.evidence.paths`'. Defaults, where a report leaves it open:

- a base id that is not declared, and an absolute base that lies outside the tree, stand for its root;
- what names the tree itself, or is a URI of another scheme than `file`, is a result without a path; the URI is kept.

Refused: a file outside the tree and outside every folder that the caller said to stand for it, and base ids that
lead back to themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testigo.errors import EvidenceInvalid
from testigo.evidence.sarif.loose import child, text, whole
from testigo.rules.evidence.paths import PathFault, of_uri

__all__ = ["Place", "Places"]

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\\\]")


@dataclass(frozen=True, slots=True)
class Place:
    """A canonical path, or None and, where the report names something that is no file of a tree, its URI."""

    path: str | None = None
    elsewhere: str | None = None


@dataclass(slots=True)
class Places:
    """What a run declares of places: `artifacts` as (uri, base id), `bases` by their ids.

    `roots` are the absolute paths that the tree may have in this report: at least one.
    """

    roots: tuple[str, ...]
    artifacts: list[tuple[str | None, str | None]] = field(default_factory=list)
    bases: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def declare(self, declared: object) -> None:
        """Take over `originalUriBaseIds`."""
        if isinstance(declared, dict):
            for base_id in declared:
                base = child(declared, base_id)
                self.bases[base_id] = (text(base.get("uri")), text(base.get("uriBaseId")))

    def of(self, location: Mapping[str, Any]) -> Place:
        """The place that an artifactLocation names. Raises EvidenceInvalid, saying why, for one that is refused."""
        uri, base_id = text(location.get("uri")), text(location.get("uriBaseId"))
        index = whole(location.get("index"))
        if uri is None and index is not None and 0 <= index < len(self.artifacts):
            uri, base_id = self.artifacts[index]
        if uri is None:
            return Place()
        uri = uri.strip()
        chain = [] if _ABSOLUTE.match(uri) else self._chain(base_id)
        ways = ["/".join(chain)]
        if chain and _ABSOLUTE.match(chain[0]):
            ways.append("/".join(chain[1:]))
        return self._first(uri, ways)

    def _chain(self, base_id: str | None) -> list[str]:
        """The URIs of a base and of those that it starts from, the outermost first, each without its last slash."""
        uris: list[str] = []
        passed: set[str] = set()
        while base_id is not None and base_id in self.bases:
            if base_id in passed:
                raise EvidenceInvalid(f"the base id {base_id[:100]!r} leads back to itself", field="originalUriBaseIds")
            passed.add(base_id)
            uri, base_id = self.bases[base_id]
            if uri is None:
                continue
            uris.insert(0, uri.strip().rstrip("/"))
            if _ABSOLUTE.match(uris[0]):
                break
        return uris

    def _first(self, uri: str, bases: list[str]) -> Place:
        """The place by the first base and root with which it is inside; the refusal of the last of them otherwise."""
        refused: EvidenceInvalid | None = None
        for base in bases:
            for root in self.roots:
                try:
                    return Place(of_uri(uri, root=root, base=f"{base}/" if base else ""))
                except EvidenceInvalid as error:
                    if error.facts.get("reason") in (PathFault.ROOT, PathFault.FOREIGN):
                        return Place(elsewhere=uri)
                    refused = error
        assert refused is not None
        if refused.facts.get("reason") in (PathFault.OUTSIDE, PathFault.HOST, PathFault.DRIVE):
            refused.remedy = "If its folder stands for the scanned one in this report, name that as its prefix."
        raise refused
