"""Artifacts: what analyses left to be kept, and its verified download (spec D-15)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from testigo.access.roles import Right
from testigo.errors import ArtifactInvalid, NotFound
from testigo.evidence.artifacts import artifact, artifacts
from testigo.evidence.model import AnalysisId, ArtifactId
from testigo.web.api import dossiers
from testigo.web.api.analyses import AnalysisPath
from testigo.web.api.shapes import Id, Moment, Shape
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.downloads import ATTESTATION_TYPE, artifact_download, attestation_download
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("", tags=["artifacts"])

ArtifactPath = Annotated[Id, Path(description="The artifact's id.")]


class ArtifactShape(Shape):
    """An artifact as it is indexed: what a download is checked against. Digests are `sha256:<hex>`."""

    id: str
    analysis_id: str
    part: int
    name: str
    media_type: str
    bytes: int
    digest: str
    raw_digest: str
    """Of what it was made of by leaving out what is not kept."""
    attestation: str
    """Of the signed envelope that says so."""
    published_at: Moment


class ArtifactsShape(Shape):
    """The artifacts of an analysis, in the order of their names."""

    items: tuple[ArtifactShape, ...]


@routes.get(
    "/analyses/{analysis_id}/artifacts",
    Right.READ,
    **told("list_artifacts", "List the artifacts of an analysis", shows={"items": [dossiers.ARTIFACT]}),
)
async def list_artifacts(analysis_id: AnalysisPath, door: AtDoor) -> ArtifactsShape:
    """List what an analysis left to be kept: at most 1,000 artifacts."""
    found = await door.read(artifacts, AnalysisId(analysis_id))
    return ArtifactsShape(items=tuple(map(ArtifactShape.model_validate, found)))


@routes.get(
    "/artifacts/{artifact_id}",
    Right.READ,
    **told("get_artifact", "Show an artifact", shows=dossiers.ARTIFACT, refuses=(NotFound,)),
)
async def get_artifact(artifact_id: ArtifactPath, door: AtDoor) -> ArtifactShape:
    """Show what is indexed of an artifact."""
    return ArtifactShape.model_validate(await door.read(artifact, ArtifactId(artifact_id)))


@routes.get(
    "/artifacts/{artifact_id}/content",
    Right.DOCUMENTS,
    response_class=Response,
    **told(
        "get_artifact_content",
        "Download an artifact",
        shows={"bomFormat": "CycloneDX", "specVersion": "1.6"},
        media="application/vnd.cyclonedx+json",
        refuses=(NotFound, ArtifactInvalid),
    ),
)
async def get_content(artifact_id: ArtifactPath, request: Request, door: AtDoor) -> Response:
    """Download an artifact. Its size and digest are checked against the index before the first byte is sent."""
    return await artifact_download(request, await door.read(artifact, ArtifactId(artifact_id)))


@routes.get(
    "/artifacts/{artifact_id}/attestation",
    Right.DOCUMENTS,
    response_class=Response,
    **told(
        "get_artifact_attestation",
        "Download an artifact's attestation",
        shows={"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []},
        media=ATTESTATION_TYPE,
        refuses=(NotFound, ArtifactInvalid),
    ),
)
async def get_attestation(artifact_id: ArtifactPath, request: Request, door: AtDoor) -> Response:
    """Download the signed envelope that binds an artifact to what it was made of."""
    return await attestation_download(request, await door.read(artifact, ArtifactId(artifact_id)))
