"""Jobs submitted: one, or many together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Request, Response
from sqlalchemy import Connection

from testigo.access.act import Order
from testigo.access.roles import Right
from testigo.authority.actions import Action
from testigo.authority.admit import admit_these
from testigo.authority.submissions import How, NewJob, Submitted
from testigo.authority.submit import submit, submit_many
from testigo.authority.write import write
from testigo.errors import (
    ActionIdCollision,
    Error,
    KeyBusy,
    KeyConflict,
    NotFound,
    PayloadTooLarge,
    ReceiptExpired,
)
from testigo.web.api import examples
from testigo.web.api.bodies import body
from testigo.web.api.conditions import Key
from testigo.web.api.jobs.asked import NewBatch, NewJobShape
from testigo.web.api.jobs.shown import BatchAnswer, SubmitAnswer
from testigo.web.api.told import told
from testigo.web.door import AtDoor, Door, order
from testigo.web.routes import Routes
from testigo.web.security.place import url
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/jobs", tags=["jobs"])

_REFUSES = (NotFound, PayloadTooLarge, KeyConflict, ActionIdCollision, KeyBusy)


@routes.post(
    "",
    Right.SUBMIT,
    **told(
        "submit_job",
        "Submit a job",
        shows={"job": examples.JOB_ID, "how": "accepted"},
        asks=NewJobShape,
        asks_so=examples.NEW_JOB,
        refuses=_REFUSES,
        status=201,
        also={200: "The job was submitted before, by this request or under this key."},
        headers={"Location": {"description": "The job's address.", "schema": {"type": "string"}}},
    ),
)
async def submit_job(
    new: Annotated[NewJobShape, Depends(body(NewJobShape))],
    key: Key,
    request: Request,
    answer: Response,
    door: AtDoor,
    who: Caller,
) -> SubmitAnswer:
    """Accept a job. Once this is answered, the work cannot be lost.

    The Idempotency-Key is the key of the submission, unless the body names another; its client is whoever sends it,
    as the audit names them (`token:deploy`), unless the body names one. The same request again is answered with the
    same job; with other content it is a conflict.
    """
    job = new.to_new_job(client=who.actor, key=key)
    asked = order(request, who, Right.SUBMIT, "jobs.submit", [f"key:{key}"], "", action_id=key)
    try:
        done = await _accepted(door, asked, job)
    except ReceiptExpired:  # what was asked for so long ago is still known by the submission's key
        done = await _accepted(door, replace(asked, action=Action(who.actor)), job)
    ((job_id, how),) = done.jobs
    answer.headers["Location"] = url(request, f"/api/v1/jobs/{job_id}")
    if done.replayed or how is How.EXISTING:
        answer.status_code = 200
        return SubmitAnswer(job=job_id, how=How.EXISTING)
    return SubmitAnswer(job=job_id, how=how)


@routes.post(
    "/batch",
    Right.SUBMIT,
    **told(
        "submit_jobs",
        "Submit many jobs",
        shows={"jobs": [{"job": examples.JOB_ID, "how": "accepted"}], "replayed": False},
        asks=NewBatch,
        asks_so=examples.BATCH,
        refuses=(*_REFUSES, ReceiptExpired),
    ),
)
async def submit_jobs(
    new: Annotated[NewBatch, Depends(body(NewBatch))], key: Key, request: Request, door: AtDoor, who: Caller
) -> BatchAnswer:
    """Accept at most 1,000 jobs in one step, each answered for itself in the order given.

    A job whose own key is taken is answered `existing`, or `conflict` where that is other work, and the rest is
    accepted. Bad input refuses them all. The Idempotency-Key is of the whole request.
    """
    jobs = await asyncio.to_thread(lambda: [each.to_new_job(client=who.actor) for each in new.jobs])
    asked = order(request, who, Right.SUBMIT, "jobs.submit", [f"key:{key}"], "", action_id=key)
    done = await door.act(asked, partial(_accept, jobs=jobs, action=asked.action))
    answers = tuple(SubmitAnswer(job=row.job_id, how=row.how) for row in done.jobs)
    return BatchAnswer(jobs=answers, replayed=done.replayed)


async def _accepted(door: Door, asked: Order, job: NewJob) -> Submitted:
    try:
        return await door.act(asked, partial(_accept_one, job=job, action=asked.action))
    except Error as error:  # there is but one job, and the caller knows no rows
        error.field = (error.field or "").removeprefix("jobs[0].") or None
        raise


def _accept_one(c: Connection, *, job: NewJob, action: Action) -> Submitted:
    return _admitted(c, submit(c, job, action=action))


def _accept(c: Connection, *, jobs: Sequence[NewJob], action: Action) -> Submitted:
    return _admitted(c, submit_many(c, jobs, action=action))


def _admitted(c: Connection, receipt: Submitted) -> Submitted:
    """Admit in the same transaction what was accepted: nobody else thinks while the heads are held (spec P-10)."""
    if not receipt.replayed:
        accepted = [row.job_id for row in receipt.jobs if row.how is How.ACCEPTED]
        _, changes = admit_these(c, accepted)
        write(c, changes, action=Action("system"))
    return receipt
