"""Artifacts: what analyses left to be kept, and its verified download (spec D-15)."""

from __future__ import annotations

from fastapi import Request, Response

from testigo.access.roles import Right
from testigo.evidence.artifacts import artifact
from testigo.evidence.model import ArtifactId
from testigo.web.door import AtDoor
from testigo.web.downloads import artifact_download, attestation_download
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("/artifacts/{artifact_id}", in_schema=False)


@routes.get("/download", Right.DOCUMENTS)
async def download(request: Request, artifact_id: str, door: AtDoor) -> Response:
    """Its bytes, as they were published."""
    return await artifact_download(request, await door.read(artifact, ArtifactId(artifact_id)))


@routes.get("/attestation", Right.DOCUMENTS)
async def attestation(request: Request, artifact_id: str, door: AtDoor) -> Response:
    """The signed envelope that says what it was made of."""
    return await attestation_download(request, await door.read(artifact, ArtifactId(artifact_id)))
