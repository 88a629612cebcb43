"""The artifacts of a sealed result: exactly those that its manifest names, and what was attested of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import BinaryIO

from testigo.errors import ArtifactInvalid
from testigo.evidence.sbom import attest
from testigo.evidence.transport.manifest import Attested, Manifest
from testigo.rules.identity import content_digest

__all__ = ["check_artifact", "check_exactly"]

CHUNK_BYTES = 256 * 1024


def check_exactly(manifest: Manifest, held: Iterable[str]) -> None:
    """Refuse artifacts, by their digests, that the manifest does not attest, and one that is missing (spec D-08)."""
    digests = set(held)
    attested = {artifact.digest: artifact.name for artifact in manifest.artifacts}
    for digest in sorted(digests - attested.keys()):
        raise _refused("unattested", digest, "the manifest does not attest it")
    for digest in sorted(attested.keys() - digests):
        raise _refused("missing", attested[digest], "it is attested, and not there")


def check_artifact(attested: Attested, body: BinaryIO, envelope: bytes, public_key: bytes) -> None:
    """Refuse bytes that are not those that were attested, and an attestation that is not about them.

    Raises `ArtifactInvalid`; its facts name the `artifact` and the `check`: bytes, digest, attestation, or those of
    the attestation itself.
    """
    size, whole = 0, hashlib.sha256()
    while size <= attested.bytes and (chunk := body.read(CHUNK_BYTES)):
        size += len(chunk)
        whole.update(chunk)
    if size != attested.bytes:
        raise _refused("bytes", attested.name, f"it does not take {attested.bytes} bytes")
    if f"sha256:{whole.hexdigest()}" != attested.digest:
        raise _refused("digest", attested.name, "its bytes do not have its digest")
    if content_digest(envelope) != attested.attestation:
        raise _refused("attestation", attested.name, "the envelope is not the one that the manifest names")
    attest.verify(envelope, public_key, digest=attested.digest, raw_digest=attested.raw_digest)


def _refused(check: str, artifact: str, why: str) -> ArtifactInvalid:
    return ArtifactInvalid(
        f"The artifact {artifact} does not hold: {why}.", field=check, artifact=artifact, check=check
    )
