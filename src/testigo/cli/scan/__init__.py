"""`testigo scan`: analyse a tree, publish what was found, and ask the gate."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.rules.evidence.severity import Severity

if TYPE_CHECKING:
    from testigo.evidence.listing import AnalysisDetail
    from testigo.evidence.model import AnalysisId
    from testigo.rules.evidence.gate import Policy
    from testigo.scan.plan import Wanted
    from testigo.scan.scope import Scope
    from testigo.store.database import Database

__all__ = ["group"]

group = call.group("scan", "")


@command(
    group,
    "scan",
    "scan .",
    "scan src --project shop --fail-on medium",
    "scan . --analysers ruff,bandit --sarif build/report.sarif",
    "scan . --baseline --json",
)
def scan(
    here: Call,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The folder, or the one file, to look at.", show_default=False)
    ],
    project: Annotated[
        str | None, typer.Option("--project", metavar="NAME", help="Whose source it is.", show_default="its folder")
    ] = None,
    analysers: Annotated[
        str | None,
        typer.Option(
            "--analysers", metavar="A,B", help="Which analysers look at it.", show_default="all that are for source"
        ),
    ] = None,
    fail_on: Annotated[
        Severity | None,
        typer.Option(
            "--fail-on",
            metavar="SEVERITY",
            help="The gate lets nothing through that is as bad: critical, high, medium, low or info.",
            show_default="the project's gate",
        ),
    ] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Only what the project's baseline has not counts.")
    ] = False,
    sarif: Annotated[
        list[Path] | None,
        typer.Option("--sarif", metavar="FILE", help="A SARIF report of another tool; may be repeated."),
    ] = None,
    sbom: Annotated[
        list[Path] | None,
        typer.Option("--sbom", metavar="FILE", help="A CycloneDX SBOM of another tool; may be repeated."),
    ] = None,
    served: Annotated[
        bool, typer.Option("--served", help="An analyser server and workers serve already: start none.")
    ] = False,
) -> None:
    """Analyse a tree, publish what was found, and ask the gate.

    In a git repository the files are those that git knows or would take, elsewhere all but what tools leave behind; no
    link is followed. Each analyser's files are split into jobs, whose results are published once, whole, when all have
    ended. An analyser server and a worker run for as long as it takes, unless --served says that others do, in the
    queue `testigo`.

    A file, or a folder below the one that the project was last scanned at as a whole, is a part of the project: what
    lies elsewhere stays as it is known.

    With --baseline only what is new counts. The baseline is what `gate set --baseline` says, or else the newest
    complete analysis that passed the gate; without either everything is new, however often it is scanned.

    Exit status: 0 the gate passed, 3 it failed, 4 something was not looked at, 10 and above an error of that class.
    Ctrl-C cancels the analysis.
    """
    began_at = time.monotonic()
    from testigo.cli.scan.carrying import leave
    from testigo.cli.scan.words import answer, tell
    from testigo.scan.scope import scope

    found = scope(path)
    with here.database() as database:
        found = _placed(database, found, path, project)
        wanted = _wanted(here, found, analysers, sarif or [], sbom or [], project, served=served)
        policy, against = _judged(database, wanted.project, fail_on, baseline=baseline)
        detail = _scanned(here, database, found, replace(wanted, policy=policy, baseline=against), served=served)
    seconds = time.monotonic() - began_at
    here.answer(answer(detail, found, seconds), lambda: tell(detail, found, seconds))
    leave(detail)


def _placed(database: Database, found: Scope, path: Path, project: str | None) -> Scope:
    """The scope as a part of what the project was last scanned at as a whole, if it lies below that."""
    from testigo.errors import NotFound
    from testigo.evidence.listing import analysis
    from testigo.evidence.projects import project as project_view
    from testigo.scan.plan import project_of
    from testigo.scan.scope import absolute, scope

    try:
        latest = database.run(project_view, project or project_of(found.root)).latest
    except NotFound:
        return found
    if latest is None:
        return found
    whole = Path(database.run(analysis, latest).view.source)
    return scope(path, within=whole) if whole in absolute(path).parents else found


def _wanted(
    here: Call,
    found: Scope,
    analysers: str | None,
    sarif: list[Path],
    sbom: list[Path],
    project: str | None,
    *,
    served: bool,
) -> Wanted:
    from testigo.authority.actions import new_id
    from testigo.evidence.transport import places
    from testigo.scan.asked import QUEUE
    from testigo.scan.plan import Wanted, every, project_of

    apart = places.apart()
    for report in (*sarif, *sbom):
        if not report.is_file():
            raise Misuse(f"There is no file {report}.")
    named = every(found, apart) if analysers is None else tuple(name for name in analysers.split(",") if name)
    queue = QUEUE if served else f"scan-{new_id()[-8:]}"
    return Wanted(project or project_of(found.root), named, {"sarif": sarif, "cyclonedx": sbom}, queue=queue)


def _judged(
    database: Database, project: str, fail_on: Severity | None, *, baseline: bool
) -> tuple[Policy | None, AnalysisId | None]:
    """The policy of this analysis and its baseline, where they are not the project's own."""
    from testigo.errors import NotFound
    from testigo.evidence.baselines import baseline_of
    from testigo.evidence.projects import project as project_view
    from testigo.rules.evidence.gate import DEFAULT, Policy

    if fail_on is not None and not baseline:
        return Policy.fail_on(fail_on), None
    if not baseline:
        return None, None
    policy = DEFAULT
    if fail_on is not None:
        policy = Policy.fail_on(fail_on)
    else:
        with suppress(NotFound):
            policy = database.run(project_view, project).policy
    return replace(policy, new_only=True), database.run(baseline_of, project, policy)


def _scanned(here: Call, database: Database, found: Scope, wanted: Wanted, *, served: bool) -> AnalysisDetail:
    from testigo.cli.scan.carrying import carried_out
    from testigo.evidence.analyses import begin_analysis
    from testigo.evidence.transport import places
    from testigo.scan.plan import plan

    new = plan(found, wanted, apart=places.apart())
    begin = partial(database.run, begin_analysis, new, action=here.action())
    roots = (found.root, *(report for reports in wanted.reports.values() for report in reports))
    return carried_out(here, database, new.id, begin, queue=None if served else wanted.queue, roots=roots)
