"""Exactly the attested artifacts are admitted, with the bytes and the words that were signed (spec D-08, D-15)."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from testigo.errors import ArtifactInvalid
from testigo.evidence.sbom.attest import Signer, statement
from testigo.evidence.transport.artifacts import check_artifact, check_exactly
from testigo.evidence.transport.manifest import Attested
from testigo.rules.identity import content_digest
from testigo.store.keys import Keyring
from tests.evidence.transport.results import manifest

BODY = b'{"bomFormat":"CycloneDX"}'
RAW, OTHER = content_digest("raw"), content_digest("other")


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """The installation's."""
    return Signer.of(Keyring.open(tmp_path / "keys"))


def _attested(signer: Signer) -> tuple[Attested, bytes]:
    digest = content_digest(BODY)
    envelope = signer.envelope(statement("sbom", digest=digest, raw_digest=RAW))
    return Attested("sbom", "application/json", len(BODY), digest, RAW, content_digest(envelope)), envelope


def test_what_was_attested_is_admitted(signer: Signer) -> None:
    """Bytes, digest, envelope and signature agree."""
    attested, envelope = _attested(signer)
    check_artifact(attested, io.BytesIO(BODY), envelope, signer.public_key)
    check_exactly(manifest(artifacts=(attested,)), [attested.digest])


@pytest.mark.parametrize(
    ("check", "body"),
    [("bytes", BODY + b" "), ("bytes", BODY[:-1]), ("digest", BODY.replace(b"X", b"Y")), ("bytes", b"")],
)
def test_other_bytes_are_refused(signer: Signer, check: str, body: bytes) -> None:
    """By their number before by their digest."""
    attested, envelope = _attested(signer)
    with pytest.raises(ArtifactInvalid) as refusal:
        check_artifact(attested, io.BytesIO(body), envelope, signer.public_key)
    assert refusal.value.facts == {"artifact": "sbom", "check": check}


def test_another_word_is_refused(signer: Signer, tmp_path: Path) -> None:
    """An envelope that the manifest does not name, one of another key, one about something else."""
    attested, envelope = _attested(signer)
    stranger = Signer.of(Keyring.open(tmp_path / "others"))
    foreign = stranger.envelope(statement("sbom", digest=attested.digest, raw_digest=RAW))
    about_other = signer.envelope(statement("sbom", digest=OTHER, raw_digest=RAW))
    of_other = signer.envelope(statement("sbom", digest=attested.digest, raw_digest=OTHER))
    for given, told, check in (
        (foreign, attested, "attestation"),
        (foreign, replace(attested, attestation=content_digest(foreign)), "signature"),
        (about_other, replace(attested, attestation=content_digest(about_other)), "subject"),
        (of_other, replace(attested, attestation=content_digest(of_other)), "material"),
        (envelope[:-1], replace(attested, attestation=content_digest(envelope[:-1])), "envelope"),
    ):
        with pytest.raises(ArtifactInvalid) as refusal:
            check_artifact(told, io.BytesIO(BODY), given, signer.public_key)
        assert refusal.value.facts["check"] == check


def test_an_artifact_too_many_or_missing_is_refused(signer: Signer) -> None:
    """Neither more than was attested, nor less."""
    attested, _ = _attested(signer)
    told = manifest(artifacts=(attested,))
    for held, check in (([attested.digest, OTHER], "unattested"), ([], "missing")):
        with pytest.raises(ArtifactInvalid) as refusal:
            check_exactly(told, held)
        assert refusal.value.facts["check"] == check
