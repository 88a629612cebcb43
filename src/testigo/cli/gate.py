"""`testigo gate`: what a project lets through, and whether its newest analysis passes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.analysed import analysis_of
from testigo.cli.analyses import severities
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.ordering import Reason, ordered
from testigo.cli.written import moment
from testigo.rules.evidence.severity import Severity

if TYPE_CHECKING:
    from testigo.evidence.gates import GateSet
    from testigo.evidence.model import Gate, ProjectView
    from testigo.rules.evidence.gate import Policy

__all__ = ["STATUSES", "group"]

group = call.group("gate", "See and set what a project lets through.")

STATUSES = {"passed": 0, "failed": 3, "incomplete": 4}
"""The exit status that tells what a gate says."""

ProjectRef = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's name.", show_default=False)]


@command(group, "show", "gate show shop", "gate show shop --check", "gate show shop --json")
def show(
    here: Call,
    project: ProjectRef,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 3 if it failed, and with 4 if it is incomplete.")
    ] = False,
) -> None:
    """Show what a project lets through, and whether it passes.

    That is what the gate says of its newest published analysis at this moment.
    """
    from testigo.evidence.listing import analysis
    from testigo.evidence.projects import project as read

    with here.database() as db:
        view = db.run(read, project)
        if check:
            analysis_of(db, project)
        latest = None if view.latest is None else db.run(analysis, view.latest)
    said = None if latest is None else latest.gate
    not_asked = () if latest is None else latest.not_asked
    answer = {
        "project": view.name,
        "policy": view.policy.to_json(),
        "revision": view.policy_revision,
        "baseline": view.baseline,
        "analysis": view.latest,
        "gate": said,
        "not_asked": not_asked,
    }
    here.answer(answer, lambda: _facts(view, said, not_asked))
    if check and said is not None and said.verdict != "passed":
        raise typer.Exit(STATUSES[said.verdict])


@command(
    group,
    "set",
    "gate set shop --fail-on high",
    "gate set shop --at-most critical=0 --at-most high=0 --at-most medium=20 --new-only --baseline 0198f3c2-…",
    "gate set shop --policy gate.json --revision 3 --note 'agreed on Monday'",
)
def set_(
    here: Call,
    project: ProjectRef,
    fail_on: Annotated[
        Severity | None, typer.Option("--fail-on", metavar="SEVERITY", help="Let through nothing as bad as this.")
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option("--at-most", metavar="SEVERITY=N", help="Let through so many of a severity; may be repeated."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="FILE", help="The whole policy in JSON, as `gate show --json` has it; - is stdin."
        ),
    ] = None,
    new_only: Annotated[bool, typer.Option("--new-only", help="What the baseline has does not count.")] = False,
    honour_suppressions: Annotated[
        bool, typer.Option("--honour-suppressions", help="What the source itself suppresses does not count.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="ANALYSIS", help="The baseline of analyses from now on; none takes it away."
        ),
    ] = None,
    revision: Annotated[
        int | None,
        typer.Option("--revision", metavar="N", min=0, help="Only if the gate is still at this revision."),
    ] = None,
    note: Reason = "",
) -> None:
    """Set what a project lets through.

    The policy is set as a whole; the baseline stays unless it is named. The newest published analysis is judged by
    it at once.
    """
    from testigo.errors import NotFound
    from testigo.evidence.gates import check_gate, set_gate
    from testigo.evidence.model import AnalysisId
    from testigo.evidence.projects import project as read

    wanted = _policy(fail_on, at_most or [], policy, new_only=new_only, honour_suppressions=honour_suppressions)
    with here.database() as db:
        try:
            before = db.run(read, project)
        except NotFound:
            kept, seen = None, 0
        else:
            kept, seen = before.baseline, before.policy_revision
    if revision is not None:
        check_gate(project, seen, revision)
    chosen = kept if baseline is None else None if baseline == "none" else AnalysisId(baseline)
    receipt = ordered(
        here,
        "gate.set",
        f"project:{project}",
        lambda c, action: set_gate(
            c,
            project,
            wanted,
            expected_revision=seen,  # the baseline that stays is that of this revision
            baseline=chosen,
            reason=note,
            action=action,
        ),
        reason=note,
    )
    answer = {
        "project": project,
        "policy": wanted.to_json(),
        "revision": receipt.revision,
        "baseline": chosen,
        "analysis": receipt.analysis_id,
        "verdict": receipt.verdict,
    }
    here.answer(answer, lambda: _tell_set(receipt))


def _policy(
    fail_on: Severity | None, at_most: list[str], file: str | None, *, new_only: bool, honour_suppressions: bool
) -> Policy:
    """The policy that the options describe; one that describes none is a misuse."""
    from testigo.rules.evidence.gate import Policy

    if file is not None:
        if fail_on or at_most or new_only or honour_suppressions:
            raise Misuse("--policy says all of it: leave the other options out.")
        return Policy.from_json(_read(file))
    if fail_on is None and not at_most:
        raise Misuse("Say what is let through: --fail-on, --at-most or --policy.")
    thresholds = {} if fail_on is None else dict(Policy.fail_on(fail_on).thresholds)
    for each in at_most:
        severity, _, most = each.partition("=")
        if severity not in [*Severity] or not (most.isascii() and most.isdigit()):
            raise Misuse(f"--at-most is a severity and a number, as in high=0, and not {each!r}.")
        thresholds[Severity(severity)] = int(most)
    said = Policy(thresholds, new_only=new_only, honour_suppressions=honour_suppressions)
    return Policy.from_json(said.to_json())


def _read(file: str) -> object:
    import sys

    try:
        return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Misuse(f"The policy cannot be read: {error}.") from error


def _facts(view: ProjectView, said: Gate | None, not_asked: Iterable[str]) -> None:
    from testigo.cli.tables import print_facts

    print_facts(_told(view, said, not_asked))


def _told(view: ProjectView, said: Gate | None, not_asked: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield "project", view.name
    yield "lets through", _limits(view.policy)
    yield "but only", "what the baseline has not" if view.policy.new_only else ""
    yield "except", "what the source suppresses" if view.policy.honour_suppressions else ""
    yield "baseline", view.baseline or ""
    yield "revision", str(view.policy_revision)
    if view.policy_at is not None:
        yield "set", f"{moment(view.policy_at)} by {view.policy_by}"
        yield "why", view.policy_reason
    yield "analysis", view.latest or "none is published yet"
    if said is not None:
        yield "gate", said.verdict
        yield "because", "\n".join(reason.text for reason in said.reasons)
        yield "counted", severities(said.counted)
        yield "not asked", ", ".join(not_asked)
        yield "judged by", "" if said.policy_revision is not None else "a policy of the analysis's own"


def _limits(policy: Policy) -> str:
    lines = [_thresholds("", policy.thresholds)]
    lines += [_thresholds(f"{name}: ", own) for name, own in sorted(policy.by_analyser.items())]
    return "\n".join(lines)


def _thresholds(of: str, thresholds: Mapping[Severity, int]) -> str:
    limits = [f"{thresholds[severity]:,} {severity}" for severity in Severity if severity in thresholds]
    return of + (", ".join(limits) if limits else "everything")


def _tell_set(receipt: GateSet) -> None:
    print(f"The gate of {receipt.project} is at revision {receipt.revision} now.")
    if receipt.verdict is not None:
        print(f"The analysis {receipt.analysis_id}: {receipt.verdict}.")
