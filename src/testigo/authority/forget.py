"""forget: remove ended jobs before their time, as pruning would, because somebody says so (spec P-04, P-26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.batch import check_batch
from testigo.authority.jobs import LockedJob, existing, lock
from testigo.authority.prune.burial import bury, chains_of, judge, whole
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import StateConflict
from testigo.rules.discreet import discreet
from testigo.rules.states import TERMINAL

__all__ = ["Forgotten", "forget"]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The receipt of a forget: the jobs that are gone, those whose place they took among them."""

    jobs: tuple[JobId, ...]
    replayed: bool


def forget(c: Connection, ids: Sequence[JobId], note: str = "", *, action: Action) -> Forgotten:
    """Remove these jobs behind tombstones, each with the chain of jobs whose place it took; `note` says why.

    A key stays as long as its tombstone, so that work that was done is not done again. All or none: raises
    `NotFound`; `StateConflict` for a job that has not ended, that has a successor which is not named, or that
    others still need.
    """
    check_batch(ids, "jobs")
    digest = digest_of(action, "forget", [list(ids), note])
    receipt = exactly_once(c, action, digest, lambda: _forget(c, ids, note, action))
    return Forgotten(tuple(map(JobId, receipt.answer)), receipt.replayed)


def _forget(c: Connection, ids: Sequence[JobId], note: str, action: Action) -> list[str]:
    chains = sorted(chains_of(c, ids))
    going = {job_id for chain in chains for job_id in chain}
    jobs = lock(c, {*ids, *going})
    for job in existing(jobs, ids):
        _check_over(job, going)
    judged = judge(c, list(jobs))
    members = []
    for chain in chains:
        whole_chain = whole(chain, judged)
        if whole_chain is None:
            raise _needed(chain[0])
        members.append(whole_chain)
    return sorted(bury(c, members, lambda _: discreet(note), actor=action.actor, action=action.id))


def _check_over(job: LockedJob, going: set[str]) -> None:
    if job.state not in TERMINAL:
        raise StateConflict(
            f"The job {job.id} is {job.state} and has not ended.",
            field="job",
            remedy="Cancel it first.",
            state=str(job.state),
        )
    if job.id not in going:
        raise StateConflict(
            f"The job {job.id} has a successor, and goes with it.",
            field="job",
            remedy="Forget its successor once that has ended.",
            state=str(job.state),
        )


def _needed(job_id: str) -> StateConflict:
    return StateConflict(
        f"The job {job_id} is still needed: it has a new successor, or others wait for it or for a job before it.",
        field="job",
        remedy="Look at its lineage.",
    )
