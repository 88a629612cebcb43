"""What the job of a part was asked, as it is kept."""

from __future__ import annotations

import json

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.read import job
from testigo.errors import NotFound
from testigo.evidence.transport.request import Request

__all__ = ["request_of"]


def request_of(c: Connection, job_id: JobId) -> Request | None:
    """The request of a `testigo.analyse` job; None where it was redacted or pruned."""
    try:
        documents = job(c, job_id, documents=True).documents
    except NotFound:
        return None
    assert documents is not None
    given = json.loads(documents.payload)
    if "redacted" in given:
        return None
    return Request(given["analyser"], given["root"], tuple(given["files"]), given["options"])
