"""start: begin the runs of jobs that a claim only leased (spec A-05, B-12).

Repeating it is harmless: a job that runs under the same lease has started. So it needs no receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionAction
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.write import Change, write
from testigo.rules import decide, fields
from testigo.rules.states import LEASED, State

__all__ = ["Held", "Started", "start"]


class Held(NamedTuple):
    """A lease as its holder names it: job, lease and epoch together (spec D-03)."""

    job_id: JobId
    lease_id: str
    epoch: int


class Started(NamedTuple):
    """Which jobs run, which shall be cancelled instead, and which leases are lost."""

    running: tuple[JobId, ...]
    cancelling: tuple[JobId, ...]
    lost: tuple[JobId, ...]


def start(c: Connection, leases: Sequence[Held], *, action: SessionAction) -> Started:
    """Begin the runs of leased jobs, a batch at once."""
    for at, lease in enumerate(leases):
        fields.fence(*lease, field=f"leases[{at}]")
    jobs = lock(c, [held.job_id for held in leases])
    held = [jobs[lease.job_id] for lease in leases if _holds(lease, jobs.get(lease.job_id), action)]
    begins = [job for job in held if job.state is State.LEASED]
    write(c, [Change(job, decide.start(job.position), {"epoch": job.epoch}) for job in begins], action=action)
    ids = {job.id for job in held}
    return Started(
        running=tuple(job.id for job in held if job.state is not State.CANCELLING),
        cancelling=tuple(job.id for job in held if job.state is State.CANCELLING),
        lost=tuple(lease.job_id for lease in leases if lease.job_id not in ids),
    )


def _holds(lease: Held, job: LockedJob | None, action: SessionAction) -> bool:
    if job is None or job.state not in LEASED:
        return False
    return (job.lease_id, job.epoch, job.session_id) == (lease.lease_id, lease.epoch, action.session_id)
