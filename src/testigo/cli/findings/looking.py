"""`testigo findings list|show|history`: what was found, how it stands, and how it came to that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.analysed import AnalysisRef, analysis_of
from testigo.cli.call import Call, command
from testigo.cli.options import After, Limit
from testigo.cli.written import moment
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity

if TYPE_CHECKING:
    from testigo.evidence.findings import Collection, FindingDetail, Happened, Sighting
    from testigo.evidence.model import Exempted, FindingView

__all__ = ["FindingRef", "group", "place", "read"]

group = call.group("findings", "")

FindingRef = Annotated[str, typer.Argument(metavar="FINDING", help="The finding's id.", show_default=False)]


@command(
    group,
    "list",
    "findings list shop",
    "findings list 0198f3c2-… --severity critical --severity high --decision open",
    "findings list shop --path src/api/ --new --json",
)
def list_(
    here: Call,
    analysis: AnalysisRef,
    severity: Annotated[
        list[Severity] | None,
        typer.Option("--severity", "-s", metavar="SEVERITY", help="Only so bad; may be repeated."),
    ] = None,
    decision: Annotated[
        list[Decision] | None,
        typer.Option("--decision", "-d", metavar="DECISION", help="Only decided so; may be repeated."),
    ] = None,
    analyser: Annotated[str | None, typer.Option("--analyser", metavar="NAME", help="Only by this analyser.")] = None,
    rule: Annotated[str | None, typer.Option("--rule", metavar="RULE", help="Only of this rule.")] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="PATH", help="Only in this file, or with a / at its end this folder."),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Only what says this somewhere.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Only what the baseline has not.")] = False,
    limit: Limit = 100,
    after: After = None,
) -> None:
    """List the findings of an analysis, the worst first.

    A cursor is of one revision of the analysis's findings: what is decided meanwhile ends it.
    """
    from testigo.authority.read import Cursor
    from testigo.evidence.findings import FindingFilter, findings

    wanted = FindingFilter(
        severities=tuple(severity or ()),
        decisions=tuple(decision or ()),
        analyser=analyser,
        rule=rule,
        path=path,
        text=text,
        known=False if new else None,
    )
    start = None if after is None else Cursor(after)
    with here.database() as db:
        chosen = analysis_of(db, analysis)
        found = db.run(findings, chosen, wanted, after=start, limit=limit)
    page = found.page
    answer = {
        "analysis": chosen,
        "revision": found.revision,
        "findings": page.items,
        "next": page.next,
        "complete": page.complete,
    }
    here.answer(answer, lambda: _table(here, found))


@command(group, "show", "findings show 0198f3c2-…", "findings show 0198f3c2-… --json")
def show(here: Call, finding: FindingRef) -> None:
    """Show one finding: what it says, and where it stands.

    It also tells what its project knows of the same finding over its analyses.
    """
    detail = read(here, finding)
    answer = {
        "finding": detail.view,
        "project": detail.project,
        "n": detail.n,
        "revision": detail.revision,
        "occurrence": detail.occurrence,
        "exemption": detail.exemption,
    }
    here.answer(answer, lambda: _facts(detail))


@command(group, "history", "findings history 0198f3c2-…", "findings history 0198f3c2-… --json")
def history(here: Call, finding: FindingRef) -> None:
    """Tell what was decided about a finding, and where else it was.

    That is in the analyses of its project that looked for it. No decision is inherited: each opens its own findings.
    """
    detail = read(here, finding)
    answer = {
        "finding": detail.view.id,
        "decisions": detail.history,
        "moves": detail.moves,
        "sightings": detail.sightings,
    }
    here.answer(answer, lambda: _history(here, detail))


def place(view: FindingView) -> str:
    """Where it is, as editors take it: src/app.py:12."""
    finding = view.finding
    return (finding.path or "") + ("" if finding.line is None else f":{finding.line}")


def read(here: Call, named: str) -> FindingDetail:
    """The finding of that id, with what is known of it."""
    from testigo.evidence.findings import finding
    from testigo.evidence.model import FindingId

    with here.database() as db:
        return db.run(finding, FindingId(named))


def _table(here: Call, found: Collection) -> None:
    from testigo.cli.tables import Column, print_table

    page = found.page
    columns: list[Column[FindingView]] = [
        Column("id", lambda view: view.id, whole=True),
        Column("severity", lambda view: view.finding.severity, whole=True),
        Column("decision", lambda view: view.decision, whole=True, wide=True),
        Column("rule", lambda view: view.finding.rule),
        Column("place", place),
        Column("message", lambda view: view.finding.message, wide=True),
    ]
    if page.items:
        print_table(columns, page.items)
    else:
        here.note("No finding matches." if page.complete else "None so far.")
    if page.next:
        what = "More" if page.complete else "10,000 findings were looked at; go on"
        here.note(f"{what}: --after {page.next}")


def _facts(detail: FindingDetail) -> None:
    from testigo.cli.tables import print_facts

    print_facts((*_found(detail), *_standing(detail), *_known(detail)))


def _found(detail: FindingDetail) -> Iterator[tuple[str, str]]:
    view, finding = detail.view, detail.view.finding
    yield "finding", view.id
    yield "severity", finding.severity
    yield "rule", finding.rule + (f" ({finding.rule_name})" if finding.rule_name else "")
    yield "analyser", finding.analyser
    yield "place", place(view)
    yield "says", finding.message
    yield "snippet", finding.snippet or ""
    yield "suppressed", "by the source itself" if finding.suppressed else ""
    yield from sorted(finding.metadata.items())
    yield "fingerprint", finding.fingerprint


def _standing(detail: FindingDetail) -> Iterator[tuple[str, str]]:
    view, review = detail.view, detail.view.review
    yield "decision", review.decision
    yield "reason", review.reason
    yield "decided", "" if view.decided_at is None else f"{moment(view.decided_at)} by {view.decided_by}"
    yield "revision", str(review.revision)
    if review.advice is not None:
        yield "advice", f"{review.advice.suggests}, says {review.advice.advisor}: {review.advice.because}"


def _known(detail: FindingDetail) -> Iterator[tuple[str, str]]:
    yield "analysis", f"{detail.view.analysis_id}, number {detail.n} of {detail.project}"
    yield "baseline", "has it" if detail.view.known else ""
    if detail.occurrence is not None:
        yield "occurrence", f"{detail.occurrence.presence}, first found by number {detail.occurrence.first_n}"
    if detail.exemption is not None:
        yield "exemption", _exemption(detail.exemption)


def _exemption(exemption: Exempted) -> str:
    until = "" if exemption.expires_at is None else f", until {moment(exemption.expires_at)}"
    return f"{exemption.state} at revision {exemption.revision}, by {exemption.reviewer}{until}: {exemption.reason}"


def _history(here: Call, detail: FindingDetail) -> None:
    from testigo.cli.tables import Column, print_table

    decided: list[Column[Happened]] = [
        Column("revision", lambda each: str(each.revision), whole=True, right=True),
        Column("time", lambda each: moment(each.at), whole=True),
        Column("decision", lambda each: each.decision, whole=True),
        Column("by", lambda each: each.actor),
        Column("because", lambda each: each.reason),
    ]
    seen: list[Column[Sighting]] = [
        Column("n", lambda each: str(each.n), whole=True, right=True),
        Column("analysis", lambda each: each.analysis_id, whole=True),
        Column("state", lambda each: each.state, whole=True, wide=True),
        Column("found", lambda each: each.finding_id or "not found", wide=True),
        Column("decision", lambda each: each.decision or "", whole=True),
    ]
    if detail.history:
        print_table(decided, detail.history)
    else:
        here.note("Nobody has decided about it.")
    print()
    print_table(seen, detail.sightings)
