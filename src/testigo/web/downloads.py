"""Artifacts as downloads: every byte is verified before the first is sent (spec D-15).

What is in the blob store is copied into bounded storage of the response, its size and digest checked against the
index on the way. What is not as it was indexed is refused, and nothing of it leaves.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from fastapi import Request
from fastapi.responses import StreamingResponse

from testigo.errors import ArtifactInvalid, NotFound
from testigo.evidence.model import ArtifactView
from testigo.store.blobs import BlobStore

__all__ = ["ATTESTATION_BYTES_MAX", "ATTESTATION_TYPE", "artifact_download", "attestation_download"]

ATTESTATION_BYTES_MAX = 1024 * 1024
"""An envelope, which the index has no size of."""

ATTESTATION_TYPE = "application/vnd.dsse.envelope+json"

_MEMORY_BYTES = 1024 * 1024
"""What of a download is held in memory; the rest is in a temporary file without a name."""

_CHUNK_BYTES = 256 * 1024
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


async def artifact_download(request: Request, view: ArtifactView) -> StreamingResponse:
    """The artifact as a file to be kept. Raises `ArtifactInvalid` for bytes that are not those that were indexed."""
    source = await asyncio.to_thread(_verified, _blobs(request), view.digest, view.bytes, view.bytes)
    return _file(source, view.name, view.media_type, view.bytes, view.digest)


async def attestation_download(request: Request, view: ArtifactView) -> StreamingResponse:
    """The signed envelope that binds the artifact to what it was made of. Raises `ArtifactInvalid` as above."""
    source = await asyncio.to_thread(_verified, _blobs(request), view.attestation, None, ATTESTATION_BYTES_MAX)
    size = source.seek(0, 2)
    source.seek(0)
    return _file(source, f"{view.name}.dsse.json", ATTESTATION_TYPE, size, view.attestation)


def _blobs(request: Request) -> BlobStore:
    found: BlobStore = request.app.state.blobs
    return found


def _verified(blobs: BlobStore, digest: str, size: int | None, most: int) -> BinaryIO:
    """A stream of the blob's bytes, all of which were looked at: of this size, if one is known, and this digest."""
    try:
        there = blobs.size(digest)
    except NotFound as error:
        raise ArtifactInvalid(
            f"The bytes of {digest} are not where this server keeps blobs.",
            field="digest",
            check="present",
            remedy="Have all servers use one folder of blobs (TESTIGO_BLOBS), or restore it from a backup.",
        ) from error
    if there > most or there != (there if size is None else size):
        raise ArtifactInvalid(
            f"There are {there} bytes, and not those that were indexed.", field="bytes", check="size", limit=f"{most}"
        )
    target = cast("BinaryIO", SpooledTemporaryFile(_MEMORY_BYTES))  # noqa: SIM115 - the response closes it
    try:
        blobs.copy_to(digest, target)
        if target.tell() != there:
            raise ArtifactInvalid("Its size changed while it was read.", field="bytes", check="size")
        target.seek(0)
    except BaseException:
        target.close()
        raise
    return target


def _file(source: BinaryIO, name: str, media_type: str, size: int, digest: str) -> StreamingResponse:
    def chunks() -> Iterator[bytes]:
        with source:
            while chunk := source.read(_CHUNK_BYTES):
                yield chunk

    headers = {
        "Content-Disposition": f'attachment; filename="{_UNFIT.sub("_", name)[:100].lstrip(".") or "artifact"}"',
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest.removeprefix('sha256:'))).decode()}:",
        "Cache-Control": "no-store",
    }
    return StreamingResponse(chunks(), media_type=media_type, headers=headers)
