"""A sealed result brought to where it is published, before any transaction begins (spec D-05, P-30)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import PageInvalid
from testigo.evidence.sbom.attest import ENVELOPE_BYTES_MAX
from testigo.evidence.transport import artifacts, wire
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.manifest import Attested, Manifest, refused
from testigo.evidence.transport.pages import checked
from testigo.rules.evidence.finding import Finding

__all__ = ["Pulled", "pull"]


@dataclass(frozen=True, slots=True)
class Pulled:
    """A result that lies in a folder as it was sent; nothing of it is believed yet."""

    manifest: Manifest
    folder: Path

    def pages(self) -> Iterator[list[Finding]]:
        """The findings of each page, anew at each call, and checked as `pages.checked` says."""
        return checked(self.manifest, (self.page(n).read_bytes() for n in range(self.manifest.pages)))

    def artifact(self, attested: Attested) -> Path:
        """Where the bytes of an artifact lie."""
        return self.folder / f"{attested.digest.removeprefix('sha256:')}.artifact"

    def envelope(self, attested: Attested) -> Path:
        """Where the envelope lies that attests it."""
        return self.folder / f"{attested.digest.removeprefix('sha256:')}.envelope"

    def page(self, n: int) -> Path:
        """Where the page lies, counted from 0."""
        return self.folder / f"{n:06d}.page"

    def check_artifacts(self, public_key: bytes) -> None:
        """Refuse whatever is not exactly what the manifest attests, under the installation's key (spec D-08)."""
        held = [f"sha256:{path.stem}" for path in self.folder.glob("*.artifact")]
        artifacts.check_exactly(self.manifest, held)
        for attested in self.manifest.artifacts:
            with self.artifact(attested).open("rb") as body:
                artifacts.check_artifact(attested, body, _bounded(self.envelope(attested)), public_key)


def pull(client: AnalyserClient, manifest: Manifest, folder: Path) -> Pulled:
    """Copy every page and artifact of the result into `folder`, a new one that only its owner can read.

    A page takes at most 1 MiB, and no more of them are asked for than the manifest counts. Raises as the client does,
    and `ManifestInvalid` for a result that ends before its last page.
    """
    folder.mkdir(mode=0o700)
    pulled = Pulled(manifest, folder)
    cursor = manifest.cursor
    for n in range(manifest.pages):
        if cursor is None:
            raise refused("pages", "pages", f"it ends after {n} of {manifest.pages} pages")
        body = client.page(manifest.run, cursor)
        _write(pulled.page(n), body)
        cursor = _following(body, n)
    for attested in manifest.artifacts:
        for digest, path in (
            (attested.digest, pulled.artifact(attested)),
            (attested.attestation, pulled.envelope(attested)),
        ):
            with open(_new(path), "wb") as file:
                client.fetch(manifest.run, digest, file)
    return pulled


def _following(body: bytes, n: int) -> str | None:
    """The cursor of the next page; the check of the page comes later."""

    def unread(check: str, field: str, why: str) -> PageInvalid:
        return PageInvalid(f"Page {n} does not hold: {why}.", field=field, page=n, ordinal=None, check=check)

    following = wire.parsed(body, unread).get("next")
    return following if isinstance(following, str) else None


def _bounded(envelope: Path) -> bytes:
    with envelope.open("rb") as file:
        return file.read(ENVELOPE_BYTES_MAX + 1)


def _write(path: Path, body: bytes) -> None:
    with open(_new(path), "wb") as file:
        file.write(body)


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
