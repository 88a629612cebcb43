"""To do something to one job: a page that asks whether it is meant, and what does it (panel.md *Access, actions*).

The form carries what makes it the same order however often it is sent, and the revision of the job that
was seen: a job that has changed since is left alone, and shown as it is beside what was asked for.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy import Connection

from testigo.access.who import Who
from testigo.authority.actions import JobId, new_id
from testigo.authority.read import JobView, job
from testigo.errors import ActionIdCollision, Conflict, Invalid, ReceiptExpired, RevisionMismatch
from testigo.journal.events import Event
from testigo.journal.history import history
from testigo.operations import Verb
from testigo.rules import fields
from testigo.rules.states import State
from testigo.web.door import AtDoor, Door, order
from testigo.web.panel.pages import ROOT, pen, render, url, words
from testigo.web.panel.timeline import timeline
from testigo.web.panel.verbs import ACTS, command, effects, offered, result_id
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["REASON_CHARS_MAX", "checked_reason", "routes"]

routes = Routes("/jobs", in_schema=False)

REASON_CHARS_MAX = 1_000


class Meant(BaseModel):
    """What the form sends: which order it is, the job as it was seen, and why."""

    action_id: str
    revision: int
    seen: str = ""
    reason: str = ""


def checked_reason(reason: str, *, needed: bool) -> str:
    """The reason without white space around it. Raises `Invalid` for none where one is needed."""
    said = reason.strip()
    if len(said) > REASON_CHARS_MAX:
        raise Invalid("The reason is too long.", field="reason", limit=f"{REASON_CHARS_MAX} characters")
    if needed and not said:
        raise Invalid("Say why.", field="reason", remedy="The audit keeps it.")
    return said


def _add(verb: Verb) -> None:
    act = ACTS[verb]

    @routes.get(f"/{{job_id}}/{verb}", act.right)
    async def confirm(request: Request, job_id: str, door: AtDoor, who: Caller, reason: str = "") -> Response:
        return _confirm(request, who, verb, await door.read(job, JobId(job_id)), new_id(), reason)

    @routes.post(f"/{{job_id}}/{verb}", act.right)
    async def do(request: Request, job_id: str, door: AtDoor, who: Caller, meant: Annotated[Meant, Form()]) -> Response:
        fields.must_be_id(job_id, field="job")
        fields.must_be_id(meant.action_id, field="action_id")
        try:
            reason = checked_reason(meant.reason, needed=act.needs_reason)
        except Invalid as error:
            view = await door.read(job, JobId(job_id))
            return _confirm(request, who, verb, view, meant.action_id, meant.reason, error)
        asked = order(
            request,
            who,
            act.right,
            f"jobs.{verb}",
            (f"job:{job_id}",),
            reason,
            action_id=meant.action_id,
            expected={JobId(job_id): meant.revision},
        )
        try:
            answer = await door.act(asked, command(verb, JobId(job_id), reason, asked.action))
        except (ActionIdCollision, ReceiptExpired):
            raise
        except Conflict as error:
            return await _changed(request, who, door, verb, JobId(job_id), meant, error)
        shown = result_id(JobId(job_id), answer)
        return RedirectResponse(url(request, f"{ROOT}/jobs/{shown}", done=meant.action_id), 303)


for _verb in Verb:
    _add(_verb)


def _confirm(
    request: Request,
    who: Who,
    verb: Verb,
    view: JobView,
    action_id: str,
    reason: str,
    error: Invalid | None = None,
) -> Response:
    t, act = words(request), ACTS[verb]
    if verb not in offered(view, who):
        return _unfit(request, who, verb, view)
    return render(
        request,
        "confirm.html",
        title=act.one,
        who=who,
        status=200 if error is None else error.http_status,
        act=act,
        action=url(request, f"{ROOT}/jobs/{view.id}/{verb}"),
        action_id=action_id,
        sample=[view],
        rest=None,
        chips=(),
        effects=effects(verb, view, t),
        hidden=[("revision", view.revision), ("seen", view.state)],
        needs_reason=act.needs_reason,
        reason=reason,
        error="" if error is None else t(error.message),
        button=t(act.button),
        back=url(request, f"{ROOT}/jobs/{view.id}"),
    )


def _unfit(request: Request, who: Who, verb: Verb, view: JobView) -> Response:
    """The page of an action that does not apply to the job as it is: there is nothing to confirm."""
    meant = Meant(action_id="", revision=view.revision, seen=view.state)
    return _page(request, who, verb, view, None, meant, Conflict(""))


async def _changed(
    request: Request, who: Who, door: Door, verb: Verb, job_id: JobId, meant: Meant, error: Conflict
) -> Response:
    view, last = await door.read(_as_it_is, job_id)
    return _page(request, who, verb, view, last, meant, error)


def _as_it_is(c: Connection, job_id: JobId) -> tuple[JobView, Event | None]:
    view = job(c, job_id)
    events = history(c, job_id, after=max(0, view.revision - 1), limit=1).events
    return view, events[-1] if events else None


def _page(
    request: Request, who: Who, verb: Verb, view: JobView, last: Event | None, meant: Meant, error: Conflict
) -> Response:
    steps = timeline([last], None, words(request), pen(request)) if last is not None else ()
    return render(
        request,
        "changed.html",
        title="It has changed",
        who=who,
        status=error.http_status,
        verb=verb,
        act=ACTS[verb],
        job=view,
        stale=isinstance(error, RevisionMismatch),
        error=error,
        seen=meant.seen if meant.seen in set(State) else None,
        revision=meant.revision,
        reason=meant.reason,
        step=steps[-1] if steps else None,
        applies=verb in offered(view, who),
    )
