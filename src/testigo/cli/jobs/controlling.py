"""`testigo jobs cancel|retry|unblock`: end jobs, do their work again or go on; those named, or all that are so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.asking import agree
from testigo.cli.call import Call, command
from testigo.cli.counting import counting
from testigo.cli.jobs.choosing import check_chosen, matching
from testigo.cli.options import Client, Kind, Note, Queue, States, Tag, Yes
from testigo.errors import StateConflict
from testigo.rules.states import TERMINAL, State

if TYPE_CHECKING:
    from testigo.authority.actions import JobId
    from testigo.authority.cancel import CancelledJob
    from testigo.authority.reprocess import Reprocessed
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("jobs", "")

BATCH = 500
"""Jobs that one cancel or unblock locks at a time."""

Named = Annotated[list[str] | None, typer.Argument(metavar="JOB", help="The jobs' ids.", show_default=False)]


@command(
    group,
    "cancel",
    "jobs cancel 0198f3c2-… --note 'wrong input'",
    "jobs cancel --queue media --state ready --note 'the bucket is gone'",
)
def cancel(
    here: Call,
    jobs: Named = None,
    queue: Queue = None,
    kind: Kind = None,
    state: States = None,
    tag: Tag = None,
    client: Client = None,
    note: Note = "",
    yes: Yes = False,
) -> None:
    """Cancel jobs: what waits ends at once, what runs is asked to stop.

    With filters instead of ids, it is all that have not ended: how many is said before anything is done.
    """
    asked = {"queue": queue, "kind": kind, "state": state, "tag": tag, "client": client}
    check_chosen(jobs, asked)
    with here.database() as db:
        chosen = _ids(jobs or [])
        if not jobs:
            chosen = [job.id for job in matching(db, asked) if job.state not in TERMINAL]
            _agree("Cancel", chosen, yes=yes)
        answers = _cancel(here, db, chosen, note)
    rows = [{"job": row.job_id, "how": row.how, "state": row.state} for row in answers]
    here.answer({"jobs": rows}, lambda: _tell_cancelled(answers))


@command(
    group,
    "retry",
    "jobs retry 0198f3c2-…",
    "jobs retry --kind media.transcode --state permanent_failure --note 'the codec is installed'",
)
def retry(
    here: Call,
    jobs: Named = None,
    queue: Queue = None,
    kind: Kind = None,
    state: States = None,
    tag: Tag = None,
    client: Client = None,
    note: Note = "",
    yes: Yes = False,
) -> None:
    """Do the work of jobs again, each as a new job in its place.

    With filters instead of ids, it is all that failed for good unless --state says otherwise: how many is said before
    anything is done, and those that have a successor already are passed over.
    """
    asked = {"queue": queue, "kind": kind, "state": state, "tag": tag, "client": client}
    check_chosen(jobs, asked)
    with here.database() as db:
        chosen = _ids(jobs or [])
        if not jobs:
            wanted = asked | {"state": state or State.PERMANENT_FAILURE}
            chosen = [job.id for job in matching(db, wanted)]
            _agree("Retry", chosen, yes=yes)
        made, refused = _reprocess(here, db, chosen, note)
    rows = [{"job": row.job_id, "supersedes": row.supersedes} for row in made]
    passed = [{"job": job_id, "code": error.code, "message": error.message} for job_id, error in refused]
    here.answer({"jobs": rows, "refused": passed}, lambda: _tell_retried(made))
    if refused and jobs:
        for _, error in refused[1:]:
            here.note(f"{error.code}: {error.message}")
        raise refused[0][1]
    if refused:
        were = "1 job was" if len(refused) == 1 else f"{len(refused):,} jobs were"
        here.note(f"{were} passed over. {refused[0][1].message}")


@command(
    group,
    "unblock",
    "jobs unblock 0198f3c2-… --note 'signed by Ana'",
    "jobs unblock --kind report.publish --note 'the gate is open'",
)
def unblock(
    here: Call,
    jobs: Named = None,
    queue: Queue = None,
    kind: Kind = None,
    tag: Tag = None,
    client: Client = None,
    note: Note = "",
    yes: Yes = False,
) -> None:
    """Send blocked jobs back to work, once what they needed is there.

    With filters instead of ids, it is all that are blocked: how many is said before anything is done. Of jobs that are
    named, none is unblocked if one is not blocked.
    """
    asked = {"queue": queue, "kind": kind, "tag": tag, "client": client}
    check_chosen(jobs, asked)
    with here.database() as db:
        chosen = _ids(jobs or [])
        if not jobs:
            chosen = [job.id for job in matching(db, asked | {"state": State.BLOCKED_BY_QUALITY})]
            _agree("Unblock", chosen, yes=yes)
        _unblock(here, db, chosen, note)
    here.answer({"jobs": chosen}, lambda: _tell_unblocked(chosen))


def _ids(named: Sequence[str]) -> list[JobId]:
    from testigo.authority.actions import JobId

    return [JobId(each) for each in dict.fromkeys(named)]


def _agree(verb: str, chosen: Sequence[JobId], *, yes: bool) -> None:
    if chosen:
        agree(f"{verb} {len(chosen):,} {'job' if len(chosen) == 1 else 'jobs'}?", yes=yes)


def _cancel(here: Call, db: Database, chosen: Sequence[JobId], note: str) -> list[CancelledJob]:
    from testigo.authority.cancel import cancel as cancelled

    answers: list[CancelledJob] = []
    left = iter(chosen)
    with counting("Cancelling", len(chosen)) as count:
        while batch := list(islice(left, BATCH)):
            answers += db.run(cancelled, batch, note=note, action=here.action()).jobs
            count(len(batch))
    return answers


def _reprocess(
    here: Call, db: Database, chosen: Sequence[JobId], note: str
) -> tuple[list[Reprocessed], list[tuple[JobId, StateConflict]]]:
    from testigo.authority.reprocess import reprocess

    made: list[Reprocessed] = []
    refused: list[tuple[JobId, StateConflict]] = []
    with counting("Retrying", len(chosen)) as count:
        for job_id in chosen:
            try:
                made.append(db.run(reprocess, job_id, note=note, action=here.action()))
            except StateConflict as error:
                refused.append((job_id, error))
            count(1)
    return made, refused


def _unblock(here: Call, db: Database, chosen: Sequence[JobId], note: str) -> None:
    from testigo.authority.unblock import unblock as unblocked

    left = iter(chosen)
    with counting("Unblocking", len(chosen)) as count:
        while batch := list(islice(left, BATCH)):
            db.run(unblocked, batch, note=note, action=here.action())
            count(len(batch))


def _tell_cancelled(answers: Sequence[CancelledJob]) -> None:
    words = {
        "cancelled": "cancelled",
        "requested": "is asked to stop",
        "ended": "had ended before: nothing changed",
    }
    if not answers:
        print("No job matches; nothing was cancelled.")
    for row in answers:
        print(f"{row.job_id}  {words[row.how]}")


def _tell_retried(made: Sequence[Reprocessed]) -> None:
    if not made:
        print("Nothing was retried.")
    for row in made:
        print(f"{row.supersedes}  is done again as  {row.job_id}")


def _tell_unblocked(chosen: Sequence[JobId]) -> None:
    if not chosen:
        print("No job matches; nothing was unblocked.")
    for job_id in chosen:
        print(f"{job_id}  is ready again")
