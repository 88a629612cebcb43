"""unblock: send blocked jobs back to work, once what they needed is there (spec A-13, B-14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.batch import check_batch
from testigo.authority.jobs import existing, lock
from testigo.authority.receipts import digest_of, exactly_once
from testigo.authority.write import Change, write
from testigo.rules import decide
from testigo.rules.discreet import discreet

__all__ = ["Unblocked", "unblock"]


@dataclass(frozen=True, slots=True)
class Unblocked:
    """The receipt of an unblock; `wakes` are the queues in which there is work again."""

    jobs: tuple[JobId, ...]
    replayed: bool
    wakes: tuple[str, ...] = ()


def unblock(c: Connection, ids: Sequence[JobId], *, note: str = "", action: Action) -> Unblocked:
    """Make these blocked jobs ready again; `note` names the new evidence or configuration.

    All or none: raises `NotFound`, `Terminal` or `StateConflict` for the first that is not blocked.
    """
    check_batch(ids, "jobs")
    digest = digest_of(action, "unblock", [list(ids), note])
    receipt = exactly_once(c, action, digest, lambda: _unblock(c, ids, note, action))
    return Unblocked(tuple(map(JobId, ids)), receipt.replayed, tuple(receipt.answer["wakes"]))


def _unblock(c: Connection, ids: Sequence[JobId], note: str, action: Action) -> dict[str, object]:
    jobs = existing(lock(c, ids), ids)
    told = {"note": discreet(note)} if note else {}
    write(c, [Change(job, decide.unblock(job.position), told) for job in jobs], action=action)
    return {"wakes": sorted({job.queue for job in jobs})}
