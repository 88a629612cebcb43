"""Jobs cancelled, retried, unblocked and forgotten, each as it was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from sqlalchemy import Connection

from testigo.access.act import Order
from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import JobId
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.reprocess import reprocess
from testigo.authority.unblock import unblock
from testigo.errors import (
    ActionIdCollision,
    Error,
    KeyBusy,
    NotFound,
    ReceiptExpired,
    RevisionMismatch,
    RevisionRequired,
    StateConflict,
    Terminal,
)
from testigo.rules.discreet import discreet
from testigo.web.api import examples
from testigo.web.api.bodies import body, body_if_any
from testigo.web.api.conditions import IfMatch, KeyIfAny, expected_of
from testigo.web.api.jobs.asked import Forgetting, Steering
from testigo.web.api.jobs.looking import JobPath
from testigo.web.api.jobs.shown import CancelAnswer, ForgetAnswer, RetryAnswer, UnblockAnswer
from testigo.web.api.told import told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

R = TypeVar("R")

routes = Routes("/jobs", tags=["jobs"])

Why = Annotated[Steering, Depends(body_if_any(Steering))]

_REFUSES: tuple[type[Error], ...] = (
    NotFound,
    RevisionMismatch,
    RevisionRequired,
    ActionIdCollision,
    ReceiptExpired,
    KeyBusy,
)


def _told(verb: str, summary: str, shows: object, *refuses: type[Error]) -> dict[str, Any]:
    seen = {"reason": "the bucket is gone", "expected_revision": 7}
    shape = Forgetting if verb == "forget" else Steering
    return told(f"{verb}_job", summary, shows=shows, asks=shape, asks_so=seen, refuses=(*_REFUSES, *refuses))


@routes.post(
    "/{job_id}/cancel",
    Right.CANCEL,
    **_told("cancel", "Cancel a job", {"job": examples.JOB_ID, "how": "requested", "state": "cancelling"}),
)
async def cancel_job(
    job_id: JobPath,
    why: Why,
    request: Request,
    door: AtDoor,
    who: Caller,
    if_match: IfMatch = None,
    key: KeyIfAny = None,
) -> CancelAnswer:
    """Cancel a job: what waits ends at once, what runs is asked to stop, and of what has ended nothing changes."""
    asked = _order(request, who, Right.CANCEL, "jobs.cancel", job_id, why, if_match, key)
    done = await door.act(asked, _command(cancel, [JobId(job_id)], asked))
    (row,) = done.jobs
    return CancelAnswer(job=row.job_id, how=row.how, state=row.state)


@routes.post(
    "/{job_id}/retry",
    Right.RETRY,
    **_told("retry", "Retry a job", {"job": examples.OTHER_ID, "supersedes": examples.JOB_ID}, StateConflict),
)
async def retry_job(
    job_id: JobPath,
    why: Why,
    request: Request,
    door: AtDoor,
    who: Caller,
    if_match: IfMatch = None,
    key: KeyIfAny = None,
) -> RetryAnswer:
    """Do a job's work again, as a new job in its place; for one that has ended, is ready or is blocked."""
    asked = _order(request, who, Right.RETRY, "jobs.retry", job_id, why, if_match, key)
    done = await door.act(asked, _command(reprocess, JobId(job_id), asked))
    return RetryAnswer(job=done.job_id, supersedes=done.supersedes)


@routes.post(
    "/{job_id}/unblock",
    Right.UNBLOCK,
    **_told("unblock", "Unblock a job", {"job": examples.JOB_ID}, StateConflict, Terminal),
)
async def unblock_job(
    job_id: JobPath,
    why: Why,
    request: Request,
    door: AtDoor,
    who: Caller,
    if_match: IfMatch = None,
    key: KeyIfAny = None,
) -> UnblockAnswer:
    """Send a blocked job back to work, once what it needed is there; the reason names that."""
    asked = _order(request, who, Right.UNBLOCK, "jobs.unblock", job_id, why, if_match, key)
    await door.act(asked, _command(unblock, [JobId(job_id)], asked))
    return UnblockAnswer(job=job_id)


@routes.post(
    "/{job_id}/forget",
    Right.FORGET,
    **_told("forget", "Forget a job", {"job": examples.JOB_ID}, StateConflict),
)
async def forget_job(
    job_id: JobPath,
    why: Annotated[Forgetting, Depends(body(Forgetting))],
    request: Request,
    door: AtDoor,
    who: Caller,
    if_match: IfMatch = None,
    key: KeyIfAny = None,
) -> ForgetAnswer:
    """Delete a job that has ended before its time. Its tombstone stays and says who did it, and why."""
    asked = _order(request, who, Right.FORGET, "jobs.forget", job_id, why, if_match, key)
    await door.act(asked, _command(forget, [JobId(job_id)], asked))
    return ForgetAnswer(job=job_id)


def _order(
    request: Request,
    who: Who,
    right: Right,
    what: str,
    job_id: str,
    why: Steering,
    if_match: str | None,
    key: str | None,
) -> Order:
    expected = expected_of(JobId(job_id), if_match, why.expected_revision)
    return order(request, who, right, what, [f"job:{job_id}"], discreet(why.reason), action_id=key, expected=expected)


def _command(command: Callable[..., R], jobs: object, asked: Order) -> Callable[[Connection], R]:
    """The command as an order is carried out by: with its reason as the note, and its action."""
    return lambda c: command(c, jobs, note=asked.reason, action=asked.action)
