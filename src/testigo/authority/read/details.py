"""One job as it stands (spec D-01, B-12, P-06)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId, SessionId
from testigo.authority.read.missing import no_job
from testigo.authority.read.progress import ProgressView, progress_of
from testigo.errors import NotFound
from testigo.rules import fields
from testigo.rules.contract import Terms, contract_terms
from testigo.rules.documents import Document
from testigo.rules.states import PHASES, Phase, State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Documents", "JobView", "Owner", "by_key", "job"]


class Documents(NamedTuple):
    """What a job was given and what it made, as exact JSON text."""

    payload: Document
    checkpoint: Document | None
    output: Document | None


class Owner(NamedTuple):
    """Who holds a job: the lease, and the session that it was granted to."""

    lease_id: str
    session_id: SessionId
    agent: str
    session_epoch: int
    session_state: str
    leased_at: datetime
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it stands: all that is known of it but its events, its edges and its late results.

    Sizes are of the documents as UTF-8, whether `documents` were asked for or not. `reason` is the
    stable word for why it ended or is blocked; `error` tells of the last failure by `code`, `message`
    and `detail`. `waited_seconds` are all waits between runs together. `unadmitted` says that no
    stream has told of it yet; `successor` is the job that took its place. `trace` is the W3C traceparent
    in which it was asked for; `progress` is what a run of it told last.
    """

    id: JobId
    queue: str
    kind: str
    stream: str
    client: str
    key: str | None
    tags: tuple[str, ...]
    supersedes: JobId | None
    successor: JobId | None
    priority: int
    created_at: datetime
    start_by: datetime | None
    finish_by: datetime | None
    attempts: int
    crash_limit: int
    timeout_seconds: float
    terms: Terms
    full_events: bool
    state: State
    reason: str | None
    unadmitted: bool
    is_parent: bool
    revision: int
    epoch: int
    failures: int
    losses: int
    releases: int
    waited_seconds: float
    cost: float
    ready_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    owner: Owner | None
    limitations: tuple[str, ...]
    error: Mapping[str, Any] | None
    payload_bytes: int
    checkpoint_bytes: int | None
    output_bytes: int | None
    documents: Documents | None
    trace: str | None
    progress: ProgressView | None

    @property
    def phase(self) -> Phase:
        """The state in the coarser words of spec D-02."""
        return PHASES[self.state]


_JOB = Statement(
    """
    SELECT CAST(j.id AS text) AS id, j.queue, j.kind, j.stream, j.client, j.key, j.tags,
           CAST(j.supersedes AS text) AS supersedes, CAST(n.successor_id AS text) AS successor,
           j.priority, j.created_at, j.start_by, j.finish_by, j.attempts, j.crash_limit, j.timeout_seconds,
           j.contract, j.full_events, CAST(j.state AS text) AS state, j.reason, a.job_id IS NOT NULL AS unadmitted,
           j.is_parent, j.revision, j.epoch, j.failures, j.losses, j.releases, j.waited_seconds, j.cost,
           j.ready_at, j.due_at, j.started_at, j.finished_at,
           CAST(j.lease_id AS text) AS lease_id, CAST(j.session_id AS text) AS session_id, j.leased_at,
           s.agent, s.epoch AS session_epoch, s.state AS session_state, j.limitations, j.error, j.trace,
           p.epoch AS run, p.done, p.total, p.note, p.at, p.first_done, p.first_at,
           octet_length(j.payload) AS payload_bytes, octet_length(j.checkpoint) AS checkpoint_bytes,
           octet_length(j.output) AS output_bytes,
           CASE WHEN :documents THEN j.payload END AS payload,
           CASE WHEN :documents THEN j.checkpoint END AS checkpoint,
           CASE WHEN :documents THEN j.output END AS output
    FROM testigo.job j
         LEFT JOIN testigo.successor n ON n.job_id = j.id
         LEFT JOIN testigo.admission a ON a.job_id = j.id
         LEFT JOIN testigo.session s ON s.id = j.session_id
         LEFT JOIN testigo.progress p ON p.job_id = j.id
    WHERE j.id = coalesce(CAST(:job AS uuid),
                          (SELECT k.job_id
                           FROM testigo.submission k
                           WHERE (k.client, k.kind, k.key) = (:client, :kind, :key)))
    """
)

_HOLDER = Statement(
    """
    SELECT CAST(job_id AS text) AS job_id
    FROM testigo.submission
    WHERE (client, kind, key) = (:client, :kind, :key)
    """
)


@single_statement
def job(c: Connection, job_id: JobId, *, documents: bool = False) -> JobView:
    """The job as it stands; its payload, checkpoint and output (256 KiB each) only if asked for.

    Raises `NotFound`; of a job that was pruned it names the tombstone and the state in which it ended.
    """
    fields.must_be_id(job_id, field="job")
    row = _JOB.row(c, job=job_id, client=None, kind=None, key=None, documents=documents)
    if row is None:
        raise no_job(c, job_id)
    return _view(row, documents=documents)


@single_statement
def by_key(c: Connection, client: str, kind: str, key: str, *, documents: bool = False) -> JobView:
    """The job that a client's key names now: of one that was reprocessed, the newest (spec D-01).

    Raises `NotFound` for a key that was never used, and as `job` does for a job that was pruned.
    """
    fields.name(client, field="client")
    fields.name(kind, field="kind")
    fields.key(key, field="key")
    row = _JOB.row(c, job=None, client=client, kind=kind, key=key, documents=documents)
    if row is not None:
        return _view(row, documents=documents)
    holder = _HOLDER.row(c, client=client, kind=kind, key=key)
    if holder is not None:
        raise no_job(c, holder.job_id)
    raise NotFound(
        f"The client {client!r} has submitted no {kind!r} job under the key {key!r}.",
        field="key",
        remedy="Check client, kind and key; a key is forgotten with its job's tombstone.",
    )


def _view(row: Row[Any], *, documents: bool) -> JobView:
    owner = None
    if row.lease_id is not None:
        session = (SessionId(row.session_id), row.agent, row.session_epoch, row.session_state)
        owner = Owner(row.lease_id, *session, row.leased_at, row.started_at)
    return JobView(
        id=JobId(row.id),
        queue=row.queue,
        kind=row.kind,
        stream=row.stream,
        client=row.client,
        key=row.key,
        tags=tuple(row.tags or ()),
        supersedes=None if row.supersedes is None else JobId(row.supersedes),
        successor=None if row.successor is None else JobId(row.successor),
        priority=row.priority,
        created_at=row.created_at,
        start_by=row.start_by,
        finish_by=row.finish_by,
        attempts=row.attempts,
        crash_limit=row.crash_limit,
        timeout_seconds=row.timeout_seconds,
        terms=contract_terms(row.contract),
        full_events=row.full_events,
        state=State(row.state),
        reason=row.reason,
        unadmitted=row.unadmitted,
        is_parent=row.is_parent,
        revision=row.revision,
        epoch=row.epoch,
        failures=row.failures,
        losses=row.losses,
        releases=row.releases,
        waited_seconds=row.waited_seconds,
        cost=row.cost,
        ready_at=row.ready_at,
        due_at=row.due_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        owner=owner,
        limitations=tuple(row.limitations or ()),
        error=None if row.error is None else json.loads(row.error),
        payload_bytes=row.payload_bytes,
        checkpoint_bytes=row.checkpoint_bytes,
        output_bytes=row.output_bytes,
        documents=_documents(row) if documents else None,
        trace=row.trace,
        progress=progress_of(row),
    )


def _documents(row: Row[Any]) -> Documents:
    checkpoint, output = (None if text is None else Document(text) for text in (row.checkpoint, row.output))
    return Documents(Document(row.payload), checkpoint, output)
