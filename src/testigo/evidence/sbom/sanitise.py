"""From a CycloneDX file as a tool wrote it to the artifact that may be published (spec D-15; field case R80)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testigo.errors import EvidenceInvalid, Invalid
from testigo.evidence.beneath import Place
from testigo.evidence.sbom.texts import Cleaner
from testigo.evidence.streaming import Source, Walk
from testigo.rules.identity import canonical

__all__ = ["MEDIA_TYPE", "SBOM_BYTES_MAX", "Sbom", "sanitised"]

MEDIA_TYPE = "application/vnd.cyclonedx+json"
SBOM_BYTES_MAX = 64 * 1024**2
VALUES_MAX = 2_000_000
"""What a document may hold: each value takes memory beside its bytes."""


@dataclass(frozen=True, slots=True)
class Sbom:
    """A sanitised bill of materials: `body` is its canonical form (RFC 8785), `raw_digest` that of the file it is from.

    `cleaned` texts were changed, and `dangling` references name what the document does not have.
    """

    body: bytes
    raw_digest: str
    version: str
    cleaned: int
    dangling: int


def sanitised(path: Path | Place, *, roots: tuple[str, ...] = (), name: str | None = None) -> Sbom:
    """The artifact that the CycloneDX file at `path` becomes; the same file gives the same bytes.

    `roots` are absolute paths of this machine whose names are taken out of every text. Raises
    EvidenceInvalid for a file above 64 MiB, behind a link, that is not JSON or not CycloneDX 1.2 or
    later, that has a name or a `bom-ref` twice, or that its schema refuses.
    """
    with Source(path, name=name, bytes_max=SBOM_BYTES_MAX) as source:
        _must_be_plain(source)
        raw = _whole(source)
        name = source.name
    from testigo.evidence.sbom.schema import VERSIONS, must_be_valid  # a second, which only documents are worth

    document = json.loads(raw)
    version = _version(document, name, VERSIONS)
    cleaner = Cleaner(roots)
    document = cleaner.cleaned(document)
    declared = _declared(document, name)
    try:
        body = canonical(document)
    except Invalid as error:
        raise EvidenceInvalid(f"{name}: {error.message}", field=error.field, limit=error.limit, file=name) from error
    if len(body) > SBOM_BYTES_MAX:
        raise EvidenceInvalid(f"{name} is too large in its canonical form", field=name, limit=f"{SBOM_BYTES_MAX} bytes")
    must_be_valid(document, version, name=name)
    return Sbom(
        body=body,
        raw_digest="sha256:" + hashlib.sha256(raw).hexdigest(),
        version=version,
        cleaned=cleaner.changed,
        dangling=sum(1 for each in _named(document) if each not in declared and not each.startswith("urn:cdx:")),
    )


def _must_be_plain(source: Source) -> None:
    """Refuse what is no JSON object, has a name twice in one object, nests too deep, or holds too much."""
    walk = Walk(source)
    for _ in walk.members():
        pass
    walk.finish()
    if walk.passed > VALUES_MAX:
        raise walk.refused("the document holds too many values", limit=f"{VALUES_MAX} values")


def _whole(source: Source) -> bytes:
    """Every byte that was checked."""
    source.rewind()
    chunks = []
    while chunk := source.read(1024 * 1024):
        chunks.append(chunk)
    return b"".join(chunks)


def _version(document: Any, name: str, known: Iterable[str]) -> str:
    if not isinstance(document, dict) or document.get("bomFormat") != "CycloneDX":
        raise EvidenceInvalid(f"{name} does not say that it is CycloneDX", field="bomFormat", file=name)
    version = document.get("specVersion")
    if not isinstance(version, str) or version not in known:
        raise EvidenceInvalid(
            f"{name} is of a version of CycloneDX that is not read",
            field="specVersion",
            limit=", ".join(known),
            file=name,
        )
    return version


def _declared(document: dict[str, Any], name: str) -> set[str]:
    """Every `bom-ref` of the document, of which each must be there once: readers disagree on which of two counts."""
    counts: Counter[str] = Counter()
    for each in _objects(document):
        ref = each.get("bom-ref")
        if isinstance(ref, str):
            counts[ref] += 1
            if counts[ref] > 1:
                raise EvidenceInvalid(f"{name} has the bom-ref {ref[:200]!r} twice", field="bom-ref", file=name)
    return set(counts)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _named(document: dict[str, Any]) -> set[str]:
    """Every reference that the document makes to parts of itself."""
    texts: list[object] = []
    for dependency in _entries(document, "dependencies"):
        texts += [dependency.get("ref"), *_texts(dependency, "dependsOn"), *_texts(dependency, "provides")]
    for composition in _entries(document, "compositions"):
        for member in ("assemblies", "dependencies", "vulnerabilities"):
            texts += _texts(composition, member)
    for vulnerability in _entries(document, "vulnerabilities"):
        texts += [affected.get("ref") for affected in _entries(vulnerability, "affects")]
    return {text for text in texts if isinstance(text, str)}


def _entries(parent: dict[str, Any], member: str) -> list[dict[str, Any]]:
    return [each for each in _texts(parent, member) if isinstance(each, dict)]


def _texts(parent: dict[str, Any], member: str) -> list[Any]:
    found = parent.get(member)
    return found if isinstance(found, list) else []
