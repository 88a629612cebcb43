"""What pages about evidence are looked at for: analyses that are published, by the commands that publish them."""

from __future__ import annotations

from pathlib import Path

from testigo.evidence.artifacts import artifacts
from testigo.evidence.model import AnalysisId, ArtifactView, NewArtifact
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from testigo.store.blobs import BlobStore
from tests.evidence.store.kit import found, going, published, sealed
from tests.web.conftest import Site

__all__ = ["SBOM", "dossier", "several", "with_artifact"]

SBOM = b'{"bomFormat":"CycloneDX","specVersion":"1.6"}'
DSSE = b'{"payloadType":"application/vnd.in-toto+json","payload":"","signatures":[]}'


def several(count: int = 3) -> list[Finding]:
    """So many findings, of all severities in turn."""
    severities = list(Severity)
    return [
        found(f"f{n}", severities[n % len(severities)], snippet=f"x = {n}\n", metadata={"cwe": "798"})
        for n in range(count)
    ]


def dossier(site: Site, *made: Finding, project: str = "shop") -> AnalysisId:
    """An analysis that is published, with three findings if none are given."""
    return published(site.world, *(made or several()), project=project)


def with_artifact(site: Site, folder: Path, content: bytes = SBOM, name: str = "sbom.json") -> ArtifactView:
    """An artifact that is published, its bytes in a folder that the site uses."""
    site.app.state.blobs = blobs = BlobStore(folder)
    blob, envelope = blobs.put(content), blobs.put(DSSE)
    new = NewArtifact(
        name, "application/vnd.cyclonedx+json", blob.size, blob.digest, content_digest("raw"), envelope.digest
    )
    run = going(site.world)
    run.publish(sealed(found("a"), artifacts=(new,)))
    run.worker.succeed(run.lease)
    return site.db.run(artifacts, run.id)[0]
