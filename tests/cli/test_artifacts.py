"""`testigo artifacts`: handed out as they were published, or not at all (spec D-15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.evidence.artifacts import artifacts
from testigo.evidence.model import ArtifactView, NewArtifact
from testigo.evidence.sbom.attest import Signer, statement
from testigo.rules.identity import content_digest
from testigo.store.blobs import BlobStore
from testigo.store.keys import Keyring
from tests.cli.conftest import Cli
from tests.evidence.store.kit import going, sealed
from tests.world import World

BODY = b'{"bomFormat":"CycloneDX"}'
RAW = content_digest(b"raw")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the installation has its keys and blobs."""
    monkeypatch.setenv("TESTIGO_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("TESTIGO_BLOBS", str(tmp_path / "blobs"))
    return tmp_path


@pytest.fixture
def sbom(world: World, folders: Path) -> ArtifactView:
    """An artifact that is published, its bytes and its envelope among the blobs."""
    blobs = BlobStore(folders / "blobs")
    digest = blobs.put(BODY).digest
    envelope = Signer.of(Keyring.open(folders / "keys")).envelope(statement("sbom.json", digest=digest, raw_digest=RAW))
    new = NewArtifact("sbom.json", "application/vnd.cyclonedx+json", len(BODY), digest, RAW, blobs.put(envelope).digest)
    run = going(world)
    run.publish(sealed(artifacts=(new,)))
    (view,) = world.db.run(artifacts, run.id)
    return view


def file_of(folders: Path, digest: str) -> Path:
    """Where a blob lies."""
    return folders / "blobs" / "sha256" / digest[7:9] / digest[9:]


def test_artifacts_are_listed(cli: Cli, sbom: ArtifactView) -> None:
    """Of an analysis, or of a project's newest."""
    head, row = cli("artifacts", "list", "shop").out.splitlines()
    assert head.split() == ["ID", "NAME", "SIZE", "TYPE", "PUBLISHED"]
    assert row.split()[:4] == [sbom.id, "sbom.json", str(len(BODY)), "bytes"]
    (told,) = cli("artifacts", "list", sbom.analysis_id, "--json").json["artifacts"]
    assert (told["id"], told["digest"]) == (sbom.id, sbom.digest)


def test_an_artifact_is_got_byte_by_byte(cli: Cli, sbom: ArtifactView, folders: Path) -> None:
    """Into a file that is whole; an answer in JSON has no room for it."""
    file = folders / "sbom.json"
    answer = cli("artifacts", "get", sbom.id, "--output", str(file), "--json").json
    assert (file.read_bytes(), answer["bytes"], answer["digest"]) == (BODY, len(BODY), sbom.digest)
    assert cli("artifacts", "get", sbom.id, "--json").status == 2


def test_an_artifact_goes_to_stdout_as_it_is(cli: Cli, sbom: ArtifactView) -> None:
    """Without a word besides."""
    ran = cli("artifacts", "get", sbom.id)
    assert (ran.status, ran.out.encode()) == (0, BODY)


def test_what_has_changed_is_not_handed_out(cli: Cli, sbom: ArtifactView, folders: Path) -> None:
    """Nor is anything left in its place."""
    place, out = file_of(folders, sbom.digest), folders / "out"
    for changed, code in ((BODY.replace(b"C", b"X"), "BLOB_CORRUPT"), (BODY + b" ", "ARTIFACT_INVALID")):
        place.write_bytes(changed)
        ran = cli("artifacts", "get", sbom.id, "--output", str(out), "--json")
        assert (ran.error["code"], out.exists()) == (code, False)
        assert cli("artifacts", "verify", sbom.id, "--json").error["code"] == code
    place.unlink()
    assert cli("artifacts", "get", sbom.id, "--output", str(out)).status == 13
    assert not list(folders.glob(".out*"))


def test_an_artifact_is_verified_with_its_attestation(cli: Cli, sbom: ArtifactView, folders: Path) -> None:
    """Signed with the installation's key, about these bytes, made of what the index says."""
    ran = cli("artifacts", "verify", sbom.id)
    assert (ran.status, RAW in ran.out) == (0, True)
    proved = cli("artifacts", "verify", sbom.id, "--json").json["proved"]
    assert (proved["digest"], proved["raw_digest"], proved["bytes"]) == (sbom.digest, RAW, len(BODY))
    place = file_of(folders, sbom.attestation)
    place.write_bytes(place.read_bytes()[:-1])
    assert cli("artifacts", "verify", sbom.id, "--json").error["code"] == "BLOB_CORRUPT"


def test_a_key_that_signed_nothing_verifies_nothing(
    cli: Cli, sbom: ArtifactView, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is not made for it; and another one is told from ours."""
    elsewhere = folders / "elsewhere"
    monkeypatch.setenv("TESTIGO_KEYS", str(elsewhere))
    assert cli("artifacts", "verify", sbom.id, "--json").error["code"] == "KEYS_UNUSABLE"
    assert not list(elsewhere.iterdir())
    Signer.of(Keyring.open(elsewhere))
    error = cli("artifacts", "verify", sbom.id, "--json").error
    assert (error["code"], error["field"]) == ("ARTIFACT_INVALID", "signature")
