"""What a job went through, told by its events (spec P-27, model.md *A job*).

A run has no row of its own: the event that ends it tells of it, and where events are kept in full,
those of its beginning as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.errors import NotFound
from testigo.journal.catalogue import CATALOGUE, RunData, data_of
from testigo.journal.events import Event, event_of
from testigo.journal.streams import check_cursor
from testigo.rules import fields
from testigo.rules.transitions import EventType
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["History", "Run", "history", "runs"]


class History(NamedTuple):
    """Events of a job in the order in which they became true; `next_after` is None where there are no more."""

    events: tuple[Event, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job, as far as events tell.

    `how` is the type of the event that ended it, and `ending` what that tells; both are None while it
    goes on, and then there is a run only where its queue keeps events in full.
    """

    epoch: int
    agent: str
    leased_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    how: EventType | None = None
    ending: RunData | None = None


# A job's events are in the order of its revisions, whichever streams tell them.
_HISTORY = Statement(
    """
    SELECT *
    FROM (SELECT p.*, count(*) OVER () AS found, row_number() OVER (ORDER BY revision) AS n,
                 sum(octet_length(data)) OVER (ORDER BY revision) - octet_length(data) AS bytes_before
          FROM (SELECT *
                FROM testigo.event
                WHERE subject = CAST(:job AS uuid) AND revision > CAST(:after AS bigint)
                ORDER BY revision
                LIMIT :limit + 1) AS p) AS e
    WHERE n <= :limit AND bytes_before < :bytes
    ORDER BY revision
    """
)

_KNOWN = Statement(
    """
    SELECT EXISTS (SELECT FROM testigo.job WHERE id = CAST(:job AS uuid))
        OR EXISTS (SELECT FROM testigo.tombstone WHERE job_id = CAST(:job AS uuid))
        OR EXISTS (SELECT FROM testigo.event WHERE subject = CAST(:job AS uuid)) AS known
    """
)


@single_statement
def history(c: Connection, job_id: JobId, *, after: int = 0, limit: int = 100) -> History:
    """The events of a job that follow the revision `after`: at most `limit`, of at most 1 MiB together.

    A job that nothing was told of yet, or whose events were pruned, has an empty history. Raises
    `NotFound` for what never was a job.
    """
    fields.identifier(job_id, field="job")
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
    check_cursor(after)
    rows = _HISTORY.rows(c, job=job_id, after=after, limit=limit, bytes=LIMITS.page_bytes_max)
    if not rows:
        _check_known(c, job_id)
        return History((), None)
    more = len(rows) < rows[0].found
    return History(tuple(event_of(row) for row in rows), rows[-1].revision if more else None)


@single_statement
def runs(c: Connection, job_id: JobId, *, after: int = 0, limit: int = 100) -> tuple[Run, ...]:
    """The runs of a job whose epochs follow `after`, in order; fewer than `limit` are the last.

    What is shown is what events tell: without `events = "full"` neither the run that goes on nor those
    that were given back. Raises `NotFound` for what never was a job.
    """
    fields.whole(limit, field="limit", low=1, high=LIMITS.page_max)
    check_cursor(after)
    found: dict[int, Run] = {}
    for event in _events(c, job_id):
        epoch = event.data.get("epoch")
        if epoch is None or epoch <= after or event.type not in _OF_A_RUN:
            continue
        if epoch not in found and len(found) == limit:
            break
        found[epoch] = _told(found.get(epoch, Run(epoch, event.actor)), event)
    return tuple(found.values())


def _events(c: Connection, job_id: JobId) -> Iterator[Event]:
    after: int | None = 0
    while after is not None:
        page = history(c, job_id, after=after, limit=LIMITS.page_max)
        yield from page.events
        after = page.next_after


_BEGINS = frozenset({EventType.LEASED, EventType.STARTED})
_ENDS = frozenset({name for name, model in CATALOGUE.items() if issubclass(model, RunData)})
_OF_A_RUN = _BEGINS | _ENDS


def _told(run: Run, event: Event) -> Run:
    """The run, with what this event tells of it as well."""
    match event.type:
        case EventType.LEASED:
            return replace(run, leased_at=event.time)
        case EventType.STARTED:
            return replace(run, started_at=event.time)
    ending = data_of(event)
    assert isinstance(ending, RunData)
    return replace(
        run,
        agent=ending.agent or event.actor,
        started_at=run.started_at or ending.started_at,
        ended_at=event.time,
        how=EventType(event.type),
        ending=ending,
    )


def _check_known(c: Connection, job_id: JobId) -> None:
    row = _KNOWN.row(c, job=job_id)
    if row is None or not row.known:
        raise NotFound(f"There is no job {job_id}.", field="job")
