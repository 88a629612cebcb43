"""`testigo jobs wait|log`: follow a job to its end, and what its runs say."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command, refusals_told
from testigo.cli.options import JobRef
from testigo.cli.written import moment, number, span, to_json
from testigo.errors import NotEnded
from testigo.settings import LIMITS, STORE

if TYPE_CHECKING:
    from testigo.authority.actions import JobId
    from testigo.authority.read import JobEnd, LogLineView, LogPlace, ProgressView
    from testigo.client import Client

__all__ = ["group"]

group = call.group("jobs", "")

LOOK_SECONDS = 0.25
"""Between two looks at a job that somebody watches."""


@command(group, "wait", "jobs wait 0198f3c2-…", "jobs wait 0198f3c2-… --timeout 60 --json")
def wait(
    here: Call,
    job: JobRef,
    timeout: Annotated[
        float | None, typer.Option("--timeout", "-t", min=0, metavar="SECONDS", help="Wait no longer than this.")
    ] = None,
) -> None:
    """Wait until a job has ended, and tell its output.

    Exit status 0 if it succeeded, 16 if it failed or was cancelled, 14 if it goes on after --timeout. On a terminal a
    line shows how far it is.
    """
    from testigo.authority.actions import JobId
    from testigo.client import Client
    from testigo.jobs import Job
    from testigo.rules.documents import Document

    job_id = JobId(job)
    with closing(Client("cli", here.url, here.schema)) as client, refusals_told():
        end = _watched(client, job_id, timeout) if _shows(here) else client.wait(job_id, timeout)
        here.answer({"job": job_id, **_members(end)}, lambda: _tell(end))
        Job(job_id, lambda: client, Document).result(timeout=0)  # raises what became of a job without an output


@command(group, "log", "jobs log 0198f3c2-…", "jobs log 0198f3c2-… --follow", "jobs log 0198f3c2-… --json | jq .text")
def log(
    here: Call,
    job: JobRef,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """Show what the runs of a job logged, in its order."""
    from testigo.authority.actions import JobId
    from testigo.authority.read import LogPlace, end
    from testigo.authority.read import log as read_log

    job_id = JobId(job)
    place: LogPlace | None = None
    with here.database() as db:
        while True:
            is_over = db.run(end, job_id).ended or not follow
            page = db.run(read_log, job_id, after=place, limit=LIMITS.page_max)
            for line in page.lines:
                _print_line(here, line)
            place = page.place
            if page.more:
                continue
            if is_over:
                break
            time.sleep(STORE.look_cap_seconds)
    if place == LogPlace() and not follow:
        here.note("Nothing was logged.")
    if page.dropped:
        here.note(f"{page.dropped:,} lines of the last run were not kept: it logged more than is kept of one.")


def _shows(here: Call) -> bool:
    from testigo.cli.tables import console

    return not here.json and console(stderr=True).is_terminal


def _watched(client: Client, job_id: JobId, timeout: float | None) -> JobEnd:
    """How the job ended; until then a line tells how far it is."""
    from rich.live import Live

    from testigo.authority.read import progress
    from testigo.cli.tables import console, fit

    began = time.monotonic()
    with Live(console=console(stderr=True), transient=True, auto_refresh=False) as live:
        while not (found := client.look(job_id)).ended:
            waited = time.monotonic() - began
            told = client.database.run(progress, job_id)
            live.update(fit(f"{found.state} for {span(waited)}{_progress(told)}"), refresh=True)
            if timeout is not None and waited >= timeout:
                break
            time.sleep(LOOK_SECONDS if timeout is None else min(LOOK_SECONDS, timeout - waited))
    if not found.ended:
        raise NotEnded(f"The job {job_id} has not ended in {timeout:g} seconds.", field="timeout", job=job_id)
    return found


def _progress(told: ProgressView | None) -> str:
    if told is None:
        return ""
    share = "" if not told.total else f" ({told.done / told.total:.0%})"
    of = "" if told.total is None else f" of {number(told.total)}"
    since = (datetime.now(UTC) - told.at).total_seconds()
    eta = f", {span(max(0.0, told.eta_seconds - since))} left" if told.eta_seconds else ""
    return f": {number(told.done)}{of}{share}{eta} {told.note}".rstrip()


def _members(end: JobEnd) -> dict[str, object]:
    return {name: getattr(end, name) for name in ("state", "reason", "output", "limitations", "error", "successor")}


def _tell(end: JobEnd) -> None:
    from testigo.cli.tables import print_facts

    limitations = ", ".join(end.limitations)
    print_facts([("state", end.state), ("limitations", limitations), ("output", end.output or "")])


def _print_line(here: Call, line: LogLineView) -> None:
    if here.json:
        members = {"epoch": line.place.epoch, "n": line.place.n, "at": line.at, "level": line.level, "text": line.text}
        print(to_json(members), flush=True)
        return
    from testigo.cli.tables import console, fit, styled

    out = console()
    out.print(
        f"{moment(line.at)} run {line.place.epoch} ", styled(line.level), f" {fit(line.text, lines=True)}", sep=""
    )
    out.file.flush()
