"""Artifacts as they are handed out: bytes that are what the index says, and what was attested (spec D-15)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from testigo.errors import ArtifactInvalid, KeysUnusable
from testigo.evidence.model import ArtifactView
from testigo.store.blobs import BlobStore
from testigo.store.keys import Keyring

__all__ = ["Proved", "copy_artifact", "prove"]


@dataclass(frozen=True, slots=True)
class Proved:
    """What holds of an artifact: its bytes are those of the index, and its envelope says what they were made of."""

    digest: str
    bytes: int
    raw_digest: str
    attestation: str


def copy_artifact(view: ArtifactView, blobs: BlobStore, target: BinaryIO) -> int:
    """Write the artifact into a buffered binary stream and return its size.

    Raises `ArtifactInvalid` before anything is written if its size is not the index's; `BlobCorrupt` before the last
    bytes are, if they have changed: what the target then holds is worth nothing. Raises `NotFound` where it does not
    lie here.
    """
    if (size := blobs.size(view.digest)) != view.bytes:
        raise ArtifactInvalid(
            f"The artifact {view.name!r} has {size} bytes here, and {view.bytes} by its index.",
            field="bytes",
            check="bytes",
        )
    return blobs.copy_to(view.digest, target)


def prove(view: ArtifactView, blobs: BlobStore, keys: Keyring) -> Proved:
    """Check the artifact's bytes, and its envelope by the installation's key.

    Raises as `copy_artifact` does, `ArtifactInvalid` naming the check that an envelope fails, and `KeysUnusable`
    where the key that signed it cannot be: a key that is made now has signed nothing.
    """
    from testigo.evidence.sbom.attest import ENVELOPE_BYTES_MAX, KEY_NAME, Signer, verify

    if not (keys.directory / KEY_NAME).exists():
        raise KeysUnusable(
            f"The key {KEY_NAME} is not in {keys.directory}, so no attestation can be checked.",
            remedy="Set TESTIGO_KEYS to the folder of the installation's keys.",
        )
    with Path(os.devnull).open("wb") as nowhere:
        size = copy_artifact(view, blobs, nowhere)
    if blobs.size(view.attestation) > ENVELOPE_BYTES_MAX:
        raise ArtifactInvalid("The attestation is too large.", field="envelope", check="envelope")
    verify(blobs.read(view.attestation), Signer.of(keys).public_key, digest=view.digest, raw_digest=view.raw_digest)
    return Proved(view.digest, size, view.raw_digest, view.attestation)
