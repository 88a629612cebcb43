"""`testigo analyses`: what was analysed, how far that is, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Right
from testigo.cli import call
from testigo.cli.analysed import AnalysisRef, analysis_of
from testigo.cli.call import Call, command
from testigo.cli.options import After, Limit
from testigo.cli.ordering import Reason, ordered
from testigo.cli.written import age, moment

if TYPE_CHECKING:
    from testigo.evidence.listing import AnalysisDetail
    from testigo.evidence.model import AnalysisView, PartView
    from testigo.rules.evidence.severity import Severity

__all__ = ["becauses", "group", "left_out", "severities"]

group = call.group("analyses", "Look at analyses, end them, and do them again.")


@command(group, "list", "analyses list", "analyses list --project shop --json")
def list_(
    here: Call,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", help="Only of this project.")
    ] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List analyses, the newest first."""
    from testigo.authority.read import Cursor
    from testigo.evidence.listing import analyses

    before = None if after is None else Cursor(after)
    with here.database() as db:
        page = db.run(analyses, project=project, before=before, limit=limit)
    here.answer({"analyses": page.items, "next": page.next}, lambda: _table(here, page.items))
    if page.next:
        here.note(f"More: --after {page.next}")


@command(group, "show", "analyses show 0198f3c2-…", "analyses show shop --json")
def show(here: Call, analysis: AnalysisRef) -> None:
    """Show one analysis.

    It tells what each analyser looked at, what was found, and what the gate says of it.
    """
    from testigo.evidence.listing import analysis as read

    with here.database() as db:
        detail = db.run(read, analysis_of(db, analysis))
    here.answer(_answer(detail), lambda: _facts(detail))


@command(group, "cancel", "analyses cancel 0198f3c2-… --note 'wrong branch'")
def cancel(
    here: Call,
    analysis: AnalysisRef,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; it is needed, and told.")],
) -> None:
    """Cancel an analysis and its jobs. What is published already stays, and is refused."""
    from testigo.evidence.analyses import cancel_analysis

    with here.database() as db:
        chosen = analysis_of(db, analysis)
    receipt = ordered(
        here,
        "analyses.cancel",
        f"analysis:{chosen}",
        lambda c, action: cancel_analysis(c, chosen, reason=note, action=action),
        reason=note,
        right=Right.CANCEL,
    )
    told = "is cancelled now" if receipt.ended else f"had ended before, as {receipt.state}: nothing changed"
    answer = {"analysis": chosen, "state": receipt.state, "ended": receipt.ended}
    here.answer(answer, lambda: print(f"The analysis {chosen} {told}."))


@command(
    group,
    "reprocess",
    "analyses reprocess shop --note 'the analyser was updated'",
    "analyses reprocess 0198f3c2-… --note 'the disk was full' --json",
)
def reprocess(
    here: Call,
    analysis: AnalysisRef,
    note: Reason = "",
    served: Annotated[
        bool, typer.Option("--served", help="An analyser server and workers serve already: start none.")
    ] = False,
) -> None:
    """Do the work of an analysis again, as a new one that supersedes it.

    The same analysers look at the same files as they are now, for the same gate and baseline. What is published, and
    what was decided about it, stays. An analysis has one successor; one that has not ended is refused. As with `scan`,
    an analyser server and a worker run for as long as it takes, unless --served says that others do.

    Exit status: as of `scan`.
    """
    from testigo.authority.actions import new_id
    from testigo.cli.scan.carrying import carried_out, leave
    from testigo.evidence.model import AnalysisId
    from testigo.scan.again import looked_at, reprocess_analysis
    from testigo.scan.asked import QUEUE

    queue, made = QUEUE if served else f"scan-{new_id()[-8:]}", AnalysisId(new_id())
    with here.database() as db:
        chosen = analysis_of(db, analysis)

        def begin() -> None:
            ordered(
                here,
                "analyses.reprocess",
                f"analysis:{chosen}",
                lambda c, action: reprocess_analysis(c, chosen, queue=queue, new_analysis_id=made, action=action),
                reason=note,
                right=Right.RETRY,
            )

        roots = db.run(looked_at, chosen)
        if not served:
            here.note(f"It looks at {', '.join(map(str, roots))}.")
        detail = carried_out(here, db, made, begin, queue=None if served else queue, roots=roots)
    here.answer(_answer(detail), lambda: _facts(detail))
    leave(detail)


def severities(counts: Mapping[Severity, int]) -> str:
    """How many of each severity, without those of which there is none."""
    return ", ".join(f"{count:,} {severity}" for severity, count in counts.items() if count) or "none"


def becauses(parts: Iterable[PartView]) -> list[str]:
    """Why parts have no result, or one that is not whole, in their order; those of one analyser that say the same once.

    It begins with an empty line, for people, if there is any.
    """
    counted = Counter((part.analyser, reason) for part in parts for reason in part.reasons)
    said = [f"{name}{f', {n:,} parts' if n > 1 else ''}: {reason}" for (name, reason), n in counted.items()]
    return ["", *said] if said else []


def left_out(counts: Mapping[str, int]) -> str:
    """How many files are not in scope, by why."""
    return ", ".join(f"{count:,} {why}" for why, count in counts.items())


def _table(here: Call, found: tuple[AnalysisView, ...]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[AnalysisView]] = [
        Column("id", lambda view: view.id, whole=True),
        Column("project", lambda view: view.project),
        Column("n", lambda view: str(view.n), wide=True, right=True),
        Column("state", lambda view: view.state, whole=True),
        Column("gate", lambda view: view.verdict or "", whole=True),
        Column("findings", lambda view: f"{view.findings:,}", whole=True, wide=True, right=True),
        Column("began", lambda view: age(view.began_at, now), whole=True, right=True),
        Column("analysers", lambda view: ", ".join(view.analysers), wide=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("There is no analysis.")


def _answer(detail: AnalysisDetail) -> dict[str, object]:
    return {
        "analysis": detail.view,
        "parts": detail.parts,
        "summary": detail.summary,
        "gate": detail.gate,
        "not_asked": detail.not_asked,
    }


def _facts(detail: AnalysisDetail) -> None:
    from testigo.cli.tables import Column, print_facts, print_table

    print_facts(_told(detail))
    print()
    columns: list[Column[PartView]] = [
        Column("analyser", lambda part: part.analyser, whole=True),
        Column("version", lambda part: part.analyser_version or "", wide=True),
        Column("outcome", lambda part: part.outcome or "", whole=True),
        Column("files", lambda part: _files(part), whole=True, right=True),
        Column("findings", lambda part: "" if part.findings is None else f"{part.findings:,}", whole=True, right=True),
        Column("job", lambda part: part.job_id),
    ]
    print_table(columns, detail.parts)
    for because in becauses(detail.parts):
        print(because)


def _told(detail: AnalysisDetail) -> Iterator[tuple[str, str]]:
    view = detail.view
    yield "analysis", view.id
    yield "project", f"{view.project}, number {view.n}"
    yield "source", view.source
    yield "only", ", ".join(view.scope or ())
    yield "left out", left_out(view.left_out or {})
    yield "state", view.state
    yield "reason", view.reason or ""
    yield "began", f"{moment(view.began_at)} by {view.actor}"
    yield "ended", "" if view.ended_at is None else moment(view.ended_at)
    yield "published by", view.publish_job
    yield "baseline", view.baseline or ""
    yield "supersedes", view.supersedes or ""
    yield "successor", view.successor or ""
    if view.persisted:
        yield "findings", severities(view.counts)
        yield "undecided", severities(view.counting)
        yield "artifacts", str(view.artifacts) if view.artifacts else ""
        yield "revision", str(view.revision)
        yield "gate", detail.gate.verdict
        yield "because", "\n".join(reason.text for reason in detail.gate.reasons)
        yield "not asked", ", ".join(detail.not_asked)


def _files(part: PartView) -> str:
    if part.coverage is None:
        return f"{part.files:,}"
    return f"{part.coverage.analysed:,} of {part.coverage.in_scope:,}"
