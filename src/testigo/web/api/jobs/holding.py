"""What a job holds: its payload, its last checkpoint and its output, as the exact text that is kept."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from testigo.access.roles import Right
from testigo.authority.actions import JobId
from testigo.authority.read import job
from testigo.errors import NotFound
from testigo.rules.documents import Document
from testigo.web.api.conditions import etag
from testigo.web.api.jobs.looking import JobPath
from testigo.web.api.told import CHANGES, told
from testigo.web.door import AtDoor, Door
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("/jobs", tags=["jobs"])


def _told(name: str, example: object) -> dict[str, Any]:
    options = told(f"get_{name}", f"Read a job's {name}", shows=example, refuses=(NotFound,), headers=CHANGES)
    return {**options, "response_class": Response}


@routes.get("/{job_id}/payload", Right.DOCUMENTS, **_told("payload", {"path": "a.mp4", "height": 720}))
async def get_payload(job_id: JobPath, door: AtDoor) -> Response:
    """Read what the job was given: the text that was sent, every number as it was written."""
    return await _document(door, JobId(job_id), "payload")


@routes.get("/{job_id}/checkpoint", Right.DOCUMENTS, **_told("checkpoint", {"at": 41}))
async def get_checkpoint(job_id: JobPath, door: AtDoor) -> Response:
    """Read what a run of the job saved last, for the next one to go on from; not found where none did."""
    return await _document(door, JobId(job_id), "checkpoint")


@routes.get("/{job_id}/output", Right.DOCUMENTS, **_told("output", {"path": "a.webm"}))
async def get_output(job_id: JobPath, door: AtDoor) -> Response:
    """Read what the job made; not found while it has made nothing."""
    return await _document(door, JobId(job_id), "output")


async def _document(door: Door, job_id: JobId, name: str) -> Response:
    view = await door.read(job, job_id, documents=True)
    text: Document | None = getattr(view.documents, name)
    if text is None:
        remedy = "Ask again when the job has made one."
        raise NotFound(f"The job {job_id} has no {name}.", field="job_id", remedy=remedy)
    return Response(text.encode(), media_type="application/json", headers={"ETag": etag(view.revision)})
