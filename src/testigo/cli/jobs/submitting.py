"""`testigo jobs submit`: a job from outside of any program."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call, complete
from testigo.cli.call import Call, command
from testigo.errors import Invalid

if TYPE_CHECKING:
    from testigo.rules.documents import Document

__all__ = ["group"]

group = call.group("jobs", "")


@command(
    group,
    "submit",
    """jobs submit media.transcode --queue media --payload '{"path": "a.mp4"}'""",
    "jobs submit report --payload @report.json --key monthly-2026-11",
    "jobs submit report --payload - --run-at 2026-12-01T06:00:00Z < report.json",
)
def submit(
    here: Call,
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="What is to be done.", autocompletion=complete.kinds, show_default=False),
    ],
    payload: Annotated[
        str, typer.Option("--payload", "-p", metavar="JSON|@FILE|-", help="What the handler is given; - reads stdin.")
    ] = "{}",
    queue: Annotated[
        str, typer.Option("--queue", "-q", metavar="QUEUE", help="Where it waits.", autocompletion=complete.queues)
    ] = "default",
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="The same kind submitted again under the same key is still one job."),
    ] = None,
    client: Annotated[
        str,
        typer.Option("--client", metavar="NAME", help="On whose behalf, as an App's name: it has keys of its own."),
    ] = "default",
    run_at: Annotated[str | None, typer.Option("--run-at", metavar="TIME", help="Not before this time.")] = None,
    start_by: Annotated[str | None, typer.Option("--start-by", metavar="TIME", help="Not begun after it.")] = None,
    finish_by: Annotated[str | None, typer.Option("--finish-by", metavar="TIME", help="No tries after it.")] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="N", help="Lower is sooner.", show_default="0")
    ] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated.")] = None,
    parents: Annotated[
        list[str] | None, typer.Option("--parent", metavar="JOB", help="Wait for this job; may be repeated.")
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="What becomes of it when a parent can never succeed: fail, cancel, wait or run.",
            autocompletion=complete.policies,
        ),
    ] = "fail",
    attempts: Annotated[
        int | None, typer.Option("--attempts", metavar="N", help="Failures until it is given up.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="The hard limit of one run.")
    ] = None,
) -> None:
    """Submit a job. When this returns, the work cannot be lost.

    A TIME is ISO 8601 with its zone, 2026-12-01T06:00:00Z.
    """
    from testigo.authority.actions import JobId
    from testigo.authority.submissions import NewJob
    from testigo.authority.submit import submit as submitted
    from testigo.rules import fields
    from testigo.rules.decide import Policy

    job = NewJob(
        kind,
        _document(payload),
        queue=queue,
        key=key,
        client=client,
        run_at=_moment(run_at, "run_at"),
        start_by=_moment(start_by, "start_by"),
        finish_by=_moment(finish_by, "finish_by"),
        priority=priority,
        tags=tuple(tags or ()),
        parents=tuple(JobId(parent) for parent in parents or ()),
        policy=fields.member(policy, Policy, field="policy"),
        attempts=attempts,
        timeout_seconds=timeout,
    )
    with here.database() as db:
        try:
            (row,) = db.run(submitted, job, action=here.action()).jobs
        except Invalid as error:
            error.field = (error.field or "").removeprefix("jobs[0].") or None
            raise
    here.answer({"job": row.job_id, "how": row.how}, lambda: print(row.job_id))
    if row.how == "existing":
        here.note("The key named this job already: it is the same work, and no second job was made.")


def _document(given: str) -> Document:
    """The payload that an option names: itself, a file's (@FILE) or standard input's (-)."""
    from testigo.rules.documents import parse

    if given == "-":
        return parse(sys.stdin.read().strip())
    if given.startswith("@"):
        try:
            return parse(Path(given[1:]).read_text("utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise Invalid(f"{given[1:]} cannot be read: {why}.", field="payload") from error
    return parse(given)


def _moment(text: str | None, field: str) -> datetime | None:
    """A time as ISO 8601 writes it; one without a zone names no point in time."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        raise Invalid(f"{text!r} is no time with a zone.", field=field, limit=f"ISO 8601, such as {now}")
    return found
