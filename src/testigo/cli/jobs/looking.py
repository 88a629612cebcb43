"""`testigo jobs list|show|explain`: what jobs there are, how one stands, and why it does not run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.jobs.choosing import filter_of
from testigo.cli.options import After, Client, JobRef, Kind, Limit, Queue, States, Tag
from testigo.cli.written import age, in_words, moment, number, size, span

if TYPE_CHECKING:
    from testigo.authority.explain import Explanation
    from testigo.authority.read import JobSummary, JobView, Page
    from testigo.journal.events import Event

__all__ = ["group"]

group = call.group("jobs", "")

EVENTS_SHOWN = 100
"""Events of a job that `show --events` tells."""


@command(
    group,
    "list",
    "jobs list --state permanent_failure",
    "jobs list --queue media --kind media.transcode --limit 100",
    "jobs list --tag nightly --json",
)
def list_(
    here: Call,
    queue: Queue = None,
    kind: Kind = None,
    state: States = None,
    tag: Tag = None,
    client: Client = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List jobs, the newest first.

    One page looks at 10,000 jobs at most: where what is asked for is rare, it says where to go on.
    """
    from testigo.authority.read import Cursor, jobs

    wanted = filter_of({"queue": queue, "kind": kind, "state": state, "tag": tag, "client": client})
    before = None if after is None else Cursor(after)
    with here.database() as db:
        page = db.run(jobs, wanted, before=before, limit=limit)
    here.answer({"jobs": page.items, "next": page.next, "complete": page.complete}, lambda: _table(here, page))


@command(group, "show", "jobs show 0198f3c2-…", "jobs show 0198f3c2-… --documents --events --json")
def show(
    here: Call,
    job: JobRef,
    documents: Annotated[
        bool, typer.Option("--documents", "-d", help="Also its payload, checkpoint and output.")
    ] = False,
    events: Annotated[bool, typer.Option("--events", "-e", help="Also what it went through.")] = False,
) -> None:
    """Show one job: how it stands, who has it, how it failed."""
    from testigo.authority.actions import JobId
    from testigo.authority.read import job as read_job
    from testigo.journal.history import History, history

    job_id = JobId(job)
    with here.database() as db:
        view = db.run(read_job, job_id, documents=documents)
        told = db.run(history, job_id, limit=EVENTS_SHOWN) if events else History((), None)
    eta = None if view.progress is None else view.progress.eta_seconds
    answer: dict[str, object] = {"job": view, "phase": view.phase, "eta_seconds": eta}
    if events:
        answer |= {"events": [event.to_cloudevent() for event in told.events], "next_after": told.next_after}
    here.answer(answer, lambda: _facts(view, told.events))


@command(group, "explain", "jobs explain 0198f3c2-…")
def explain(here: Call, job: JobRef) -> None:
    """Explain why a job does not run, and when it will.

    Of one that runs or has ended, it says who runs it or how it ended.
    """
    from testigo.authority.actions import JobId
    from testigo.authority.explain import explain as explained

    with here.database() as db:
        found = db.run(explained, JobId(job))
    told = {name: getattr(found, name) for name in ("state", "code", "text", "facts", "until", "blockers")}
    here.answer({"job": found.job_id, **told}, lambda: _explained(found))


def _table(here: Call, page: Page[JobSummary]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[JobSummary]] = [
        Column("id", lambda job: job.id, whole=True),
        Column("state", lambda job: job.state, whole=True),
        Column("kind", lambda job: job.kind),
        Column("queue", lambda job: job.queue, wide=True),
        Column("age", lambda job: age(job.created_at, now), whole=True, right=True),
        Column("failures", lambda job: f"{job.failures}/{job.attempts}", whole=True, wide=True, right=True),
        Column("why", lambda job: job.error_code or job.reason or "", wide=True),
    ]
    if page.items:
        print_table(columns, page.items)
    else:
        here.note("No job matches." if page.complete else "None so far.")
    if page.next:
        what = "More" if page.complete else "10,000 jobs were looked at; go on"
        here.note(f"{what}: --after {page.next}")


def _facts(view: JobView, events: tuple[Event, ...]) -> None:
    from testigo.cli.tables import Column, print_facts, print_table

    print_facts(_told(view))
    if events:
        print()
        columns: list[Column[Event]] = [
            Column("time", lambda event: moment(event.time), whole=True),
            Column("event", lambda event: event.type, whole=True),
            Column("by", lambda event: event.actor),
            Column("tells", lambda event: in_words(event.data)),
        ]
        print_table(columns, events)


def _told(view: JobView) -> Iterator[tuple[str, str]]:
    yield "job", view.id
    yield "state", view.state
    yield "reason", view.reason or ""
    yield "kind", view.kind
    yield "queue", view.queue
    yield "client", view.client
    yield "key", view.key or ""
    yield "tags", ", ".join(view.tags)
    yield "priority", str(view.priority) if view.priority else ""
    yield "submitted", moment(view.created_at)
    for name, at in (
        ("due", view.due_at),
        ("start by", view.start_by),
        ("finish by", view.finish_by),
        ("started", view.started_at),
        ("finished", view.finished_at),
    ):
        yield name, "" if at is None else moment(at)
    yield from _effort(view)
    if view.owner is not None:
        yield "held by", f"{view.owner.agent}, since {moment(view.owner.leased_at)}"
    if view.progress is not None:
        yield "progress", _progress(view)
    if view.error is not None:
        yield "error", f"{view.error.get('code')}: {view.error.get('message')}"
        yield "detail", str(view.error.get("detail") or "")
    yield "limitations", ", ".join(view.limitations)
    yield "supersedes", view.supersedes or ""
    yield "successor", view.successor or ""
    yield from _documents(view)


def _effort(view: JobView) -> Iterator[tuple[str, str]]:
    yield "runs", str(view.epoch)
    yield "failures", f"{view.failures} of {view.attempts}"
    yield "losses", f"{view.losses} of {view.crash_limit}" if view.losses else ""
    yield "releases", str(view.releases) if view.releases else ""
    yield "time limit", f"{view.timeout_seconds:g} s a run"


def _progress(view: JobView) -> str:
    told = view.progress
    assert told is not None
    of = "" if told.total is None else f" of {number(told.total)}"
    eta = f", {span(told.eta_seconds)} left at {moment(told.at)}" if told.eta_seconds else ""
    return f"{number(told.done)}{of}{eta}" + (f" ({told.note})" if told.note else "")


def _documents(view: JobView) -> Iterator[tuple[str, str]]:
    sizes = {"payload": view.payload_bytes, "checkpoint": view.checkpoint_bytes, "output": view.output_bytes}
    for name, count in sizes.items():
        text = None if view.documents is None else getattr(view.documents, name)
        yield name, size(count) if text is None else text


def _explained(found: Explanation) -> None:
    from testigo.cli.tables import print_hanging

    print_hanging(f"{found.state}: ", found.text)
    for also in found.blockers[1:]:
        print_hanging("  also: ", also.text)
