"""One job: how it stands and why, what it holds, and what it went through (panel.md *Job detail*)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, NamedTuple

from fastapi import Query as Asked
from fastapi import Request, Response
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import JobId
from testigo.authority.explain import Explanation, explain
from testigo.authority.read import (
    JobView,
    LateResult,
    Lineage,
    LogPage,
    LogPlace,
    Page,
    ReceiptView,
    Tombstone,
    job,
    late_results,
    lineage,
    log,
    receipt,
    tombstones,
)
from testigo.errors import NotFound
from testigo.journal.events import Event
from testigo.journal.history import History, Run, history, runs
from testigo.rules import fields
from testigo.rules.retries import Backoff, Constant, Exponential, Listed
from testigo.web.api.veil import veiled_event, veiled_explanation, veiled_job, veiled_late, veiled_run
from testigo.web.door import AtDoor
from testigo.web.panel.documents import INLINE_BYTES_MAX, NAMES, shown
from testigo.web.panel.graph import BOX_HEIGHT, BOX_WIDTH, draw
from testigo.web.panel.pages import pen, render, words
from testigo.web.panel.reasons import explained
from testigo.web.panel.search import quoted
from testigo.web.panel.timeline import Step, timeline
from testigo.web.panel.verbs import ACTS, offered
from testigo.web.panel.words import Words
from testigo.web.panel.written import Written
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/jobs", in_schema=False)

EVENTS_SHOWN = 100
RUNS_SHOWN = 100
LOG_LINES_SHOWN = 1_000
RECEIPTS_SHOWN = 10
RELATED_SHOWN = 100
LATE_SHOWN = 20
LOOKS_AGAIN = 3

_OF_A_SESSION = re.compile(r"[0-9a-f-]{36}(:\d+){1,2}")
"""A worker's own command: its receipt is kept with its session, and found by nobody else."""

RunAsked = Annotated[int | None, Asked(alias="run", ge=1, le=fields.INTEGER_MAX)]
After = Annotated[int, Asked(alias="after", ge=0, le=fields.BIGINT_MAX)]


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is shown of a job, read in one transaction. `view` is None of one that was pruned or forgotten."""

    view: JobView | None
    told: History
    runs: tuple[Run, ...]
    tombstones: tuple[Tombstone, ...]
    why: Explanation | None = None
    lineage: Lineage | None = None
    late: Page[LateResult] | None = None
    log: LogPage | None = None
    receipts: tuple[ReceiptView, ...] = ()


class Done(NamedTuple):
    """What an action did: in words, and the job in whose place this one came by it."""

    said: str
    supersedes: str | None


@routes.get("/{job_id}", Right.READ)
async def job_page(
    request: Request,
    job_id: str,
    door: AtDoor,
    who: Caller,
    run: RunAsked = None,
    after: After = 0,
    show: str | None = None,
    done: str | None = None,
) -> Response:
    """The job; `run` chooses whose log is shown, `show` a large document, `done` is an action whose result is told."""
    sees = who.may(Right.DOCUMENTS)
    seen = await door.read(_see, JobId(job_id), after=after, run=run, sees=sees)
    seen = seen if sees else _veiled(seen)
    t, write = words(request), pen(request)
    if seen.view is None:
        return _gone(request, who, seen, t, write)
    view = seen.view
    owner = view.owner
    steps = timeline(seen.told.events, view if seen.told.next_after is None else None, t, write)
    return render(
        request,
        "job.html",
        title=view.kind,
        who=who,
        topics=[f"job:{view.id}"],
        job=view,
        why=explained(seen.why, t, write) if seen.why else (),
        verbs=[(verb, ACTS[verb]) for verb in offered(view, who)],
        result=_result(steps, who, done, t),
        beat_age=request.app.state.hub.beat_age_seconds(owner.session_id) if owner else None,
        limit_at=owner.started_at + timedelta(seconds=view.timeout_seconds) if owner and owner.started_at else None,
        term=seen.why.facts.get("term_seconds") if seen.why else None,
        quoted=quoted,
        backoff=_backoff(view.terms.backoff, t, write),
        steps=steps,
        events_after=seen.told.next_after,
        runs=seen.runs,
        documents=shown(view, asked=show if show in NAMES else None),
        inline_max=INLINE_BYTES_MAX,
        late=seen.late,
        log=seen.log,
        log_run=run or view.epoch,
        receipts=seen.receipts,
        tombstones=seen.tombstones,
        lineage=seen.lineage,
        drawing=draw(seen.lineage, view.state) if seen.lineage else None,
        box=(BOX_WIDTH, BOX_HEIGHT),
    )


@routes.get("/{job_id}/{name}.json", Right.DOCUMENTS)
async def document_file(job_id: str, name: str, door: AtDoor) -> Response:
    """The payload, the checkpoint or the output, byte by byte as it is kept."""
    view = await door.read(job, JobId(job_id), documents=True)
    text = getattr(view.documents, name) if name in NAMES else None
    if text is None:
        raise NotFound(
            f"The job has no such document: {name[:40]}.", field="name", remedy=f"Ask for {', '.join(NAMES)}."
        )
    headers = {"Content-Disposition": f'attachment; filename="{view.id}-{name}.json"'}
    return Response(text.encode(), media_type="application/json", headers=headers)


def _see(c: Connection, job_id: JobId, *, after: int, run: int | None, sees: bool) -> Seen:
    """What there is to see, of one revision: a job that changed meanwhile is looked at again, a few times at most."""
    seen = _look(c, job_id, after=after, run=run, sees=sees)
    for _ in range(LOOKS_AGAIN):
        now = _view(c, job_id, documents=False)
        if (seen.view and seen.view.revision) == (now and now.revision):
            break
        seen = _look(c, job_id, after=after, run=run, sees=sees)
    return seen


def _view(c: Connection, job_id: JobId, *, documents: bool) -> JobView | None:
    try:
        return job(c, job_id, documents=documents)
    except NotFound:
        return None


def _look(c: Connection, job_id: JobId, *, after: int, run: int | None, sees: bool) -> Seen:
    view = _view(c, job_id, documents=sees)
    told = history(c, job_id, after=after, limit=EVENTS_SHOWN)
    ran = runs(c, job_id, limit=RUNS_SHOWN)
    buried = tombstones(c, job_id, limit=LATE_SHOWN).items
    if view is None:
        return Seen(None, told, ran, buried)
    place = LogPlace(max(0, (run or view.epoch) - 1), fields.BIGINT_MAX)
    return Seen(
        view,
        told,
        ran,
        buried,
        why=explain(c, job_id),
        lineage=lineage(c, job_id, limit=RELATED_SHOWN),
        late=late_results(c, job_id, limit=LATE_SHOWN),
        log=log(c, job_id, after=place, limit=LOG_LINES_SHOWN) if sees else None,
        receipts=_receipts(c, told.events),
    )


def _receipts(c: Connection, events: tuple[Event, ...]) -> tuple[ReceiptView, ...]:
    """The receipts of the last commands that changed the job, workers' own excepted."""
    commands = dict.fromkeys((event.actor, event.action) for event in reversed(events))
    wanted = [each for each in commands if not _OF_A_SESSION.fullmatch(each[1])][:RECEIPTS_SHOWN]
    found = []
    for actor, action in reversed(wanted):
        try:
            found.append(receipt(c, actor, action))
        except NotFound:
            continue
    return tuple(found)


def _veiled(seen: Seen) -> Seen:
    """What somebody sees of it who may look at jobs and not into them."""
    return replace(
        seen,
        view=seen.view and veiled_job(seen.view),
        told=History(tuple(map(veiled_event, seen.told.events)), seen.told.next_after),
        runs=tuple(map(veiled_run, seen.runs)),
        why=seen.why and veiled_explanation(seen.why),
        late=seen.late and replace(seen.late, items=tuple(map(veiled_late, seen.late.items))),
    )


def _gone(request: Request, who: Who, seen: Seen, t: Words, write: Written) -> Response:
    """What is left of a job that is not there any more."""
    buried = [tombstone for tombstone in seen.tombstones if tombstone.what == "pruned"]
    return render(
        request,
        "gone.html",
        title="The job is gone",
        who=who,
        status=NotFound.http_status,
        tombstones=buried or seen.tombstones,
        steps=timeline(seen.told.events, None, t, write),
    )


def _result(steps: Sequence[Step], who: Who, done: str | None, t: Words) -> Done | None:
    """What an action of whoever looks did to this job, as its event tells; an address alone makes nothing true."""
    own = (who.actor, done)
    for step in reversed(steps):
        if step.event is not None and (step.event.actor, step.event.action) == own:
            replaced = step.event.data.get("supersedes")
            return Done(t("Retried: this is the new job.") if replaced else step.said, replaced)
    return None


def _backoff(backoff: Backoff, t: Words, write: Written) -> str:
    match backoff:
        case Constant(seconds):
            return t("{span} after each failure", span=write.span(seconds))
        case Listed(waits):
            return ", ".join(write.span(wait) for wait in waits[:10]) + (" …" if len(waits) > 10 else "")
        case Exponential(first, cap, True):
            return t("up to {first}, doubling to {cap}", first=write.span(first), cap=write.span(cap))
        case Exponential(first, cap):
            return t("{first}, doubling to {cap}", first=write.span(first), cap=write.span(cap))
