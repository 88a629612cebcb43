"""What the jobs of an analysis are asked: as they are made, and as it is kept."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.read import job
from testigo.authority.submissions import NewJob
from testigo.errors import NotFound
from testigo.evidence.model import AnalysisId, NewPart
from testigo.evidence.transport.request import Request
from testigo.rules.decide import Policy
from testigo.scan.jobs import analyse, publish

__all__ = ["QUEUE", "NewJobs", "jobs", "request_of"]

QUEUE = "testigo"
"""Where workers wait that serve scans."""
WITHIN = timedelta(days=3)
"""Until when an analysis is published at all: its jobs may wait in a queue that nobody serves any more."""


_MEMBERS = {"analyser", "root", "files", "options"}


class NewJobs(NamedTuple):
    """The jobs of a new analysis, which know its id."""

    parts: tuple[NewPart, ...]
    publish: NewJob


def jobs(requests: Iterable[Request], queue: str, analysis: AnalysisId) -> NewJobs:
    """The jobs of a new analysis that asks these, whose id `new_id` made.

    Their ids and the date follow from it, so that every try makes the same.
    """
    parts: list[NewPart] = []
    for each in requests:
        # It belongs to this analysis: the same files may have changed by the next one, and are then looked at again.
        request = replace(each, options={**each.options, "analysis": analysis})
        Request.from_json(request.to_json())
        job = analyse.options(queue=queue).new_job(
            analyser=request.analyser, root=request.root, files=list(request.files), options=dict(request.options)
        )
        parts.append(NewPart(request.analyser, replace(job, id=_id_of(analysis, len(parts))), len(request.files)))
    # Whatever became of the parts, what they left is published, or the analysis ends and says why.
    parents = [part.job.id for part in parts]
    until = datetime.fromtimestamp((uuid.UUID(analysis).int >> 80) / 1000, UTC) + WITHIN
    last = publish.options(queue=queue, parents=parents, policy=Policy.RUN, finish_by=until).new_job(analysis=analysis)
    return NewJobs(tuple(parts), replace(last, id=_id_of(analysis, len(parts))))


def _id_of(analysis: AnalysisId, n: int) -> JobId:
    """The id of its `n`th job, a UUIDv7 of the same time; they are in the order of the parts."""
    time = uuid.UUID(analysis).int >> 80
    drawn = int.from_bytes(hashlib.sha256(f"{analysis} {n}".encode()).digest()[:8]) >> 2
    return JobId(str(uuid.UUID(int=time << 80 | 0x7 << 76 | n << 64 | 0b10 << 62 | drawn)))


def request_of(c: Connection, job_id: JobId) -> Request | None:
    """The request of a `testigo.analyse` job; None where it is not kept: redacted, or pruned."""
    try:
        documents = job(c, job_id, documents=True).documents
    except NotFound:
        return None
    assert documents is not None
    given = json.loads(documents.payload)
    if not isinstance(given, dict) or given.keys() != _MEMBERS:
        return None
    return Request(given["analyser"], given["root"], tuple(given["files"]), given["options"])
