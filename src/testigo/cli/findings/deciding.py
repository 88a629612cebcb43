"""`testigo findings decide`: what somebody decides about one finding, or the same about several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Right
from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.ordering import ordered
from testigo.errors import RevisionMismatch
from testigo.rules.evidence.review import Decision

if TYPE_CHECKING:
    from testigo.evidence.model import FindingId
    from testigo.evidence.review import Decided, DecidedRow

__all__ = ["group"]

group = call.group("findings", "")

UNDECIDED = 1
"""The revision of a finding about which nobody has decided."""


@command(
    group,
    "decide",
    "findings decide needs_review 0198f3c2-…",
    "findings decide false_positive 0198f3c2-… 0198f3c3-… --reason 'the value is a test fixture'",
    "findings decide fixed 0198f3c2-… --reason 'merged in 881' --revision 3",
)
def decide(
    here: Call,
    decision: Annotated[
        Decision,
        typer.Argument(
            metavar="DECISION",
            help="open, needs_review, gate_exempt, accepted_risk, ignore, false_positive or fixed.",
            show_default=False,
        ),
    ],
    findings: Annotated[
        list[str], typer.Argument(metavar="FINDING", help="The findings' ids, of one analysis.", show_default=False)
    ],
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; all but open and needs_review demand it.")
    ] = "",
    revision: Annotated[
        int | None,
        typer.Option("--revision", metavar="N", min=1, help="The revision of the finding that you have seen."),
    ] = None,
) -> None:
    """Decide about findings. The gate of their analysis is judged anew at once.

    Without --revision it is the first decision about each: one about which somebody has decided meanwhile is left
    alone and told, and exit status 12 says so. To decide again, look at it, and name the revision that you have seen.
    """
    chosen = list(dict.fromkeys(findings))
    if len(chosen) > 1 and revision is not None:
        raise Misuse("--revision is that of one finding.")
    expected = UNDECIDED if revision is None else revision
    if len(chosen) == 1:
        receipt = _one(here, chosen[0], decision, expected, reason)
    else:
        receipt = _several(here, chosen, decision, reason)
    rows = [row._asdict() for row in receipt.findings]
    answer = {
        "analysis": receipt.analysis_id,
        "findings": rows,
        "verdict": receipt.verdict,
        "revision": receipt.revision,
    }
    here.answer(answer, lambda: _tell(receipt))
    if left := [row for row in receipt.findings if not row.decided]:
        raise _left_alone(left)


def _one(here: Call, named: str, decision: Decision, expected: int, reason: str) -> Decided:
    from testigo.evidence.model import FindingId
    from testigo.evidence.review import decide as decided

    return ordered(
        here,
        "findings.decide",
        f"finding:{named}",
        lambda c, action: decided(
            c, FindingId(named), decision, expected_revision=expected, reason=reason, action=action
        ),
        reason=reason,
        right=Right.REVIEW,
    )


def _several(here: Call, named: list[str], decision: Decision, reason: str) -> Decided:
    """The same about several of the analysis of the first: one that is of another is told as gone."""
    from testigo.evidence.findings import finding
    from testigo.evidence.model import FindingId
    from testigo.evidence.review import decide_many

    expected: dict[FindingId, int] = {FindingId(each): UNDECIDED for each in named}
    with here.database() as db:
        analysis_id = db.run(finding, FindingId(named[0])).view.analysis_id
    return ordered(
        here,
        "findings.decide",
        [f"finding:{each}" for each in named],
        lambda c, action: decide_many(c, analysis_id, expected, decision, reason=reason, action=action),
        reason=reason,
        right=Right.REVIEW,
    )


def _tell(receipt: Decided) -> None:
    for row in receipt.findings:
        if row.decided:
            print(f"{row.finding_id}  {row.decision} now, at revision {row.revision}")
        elif row.decision is None:
            print(f"{row.finding_id}  is no finding of this analysis")
        else:
            print(f"{row.finding_id}  was {row.decision} already, at revision {row.revision}: left alone")
    print(f"The gate of the analysis {receipt.analysis_id}: {receipt.verdict}.")


def _left_alone(left: list[DecidedRow]) -> RevisionMismatch:
    were = "1 finding was" if len(left) == 1 else f"{len(left):,} findings were"
    return RevisionMismatch(
        f"{were} left alone: somebody decided since, or they are not of this analysis.",
        field="findings",
        remedy="Look at each as it is now, and decide again with its --revision.",
        findings=[row.finding_id for row in left],
    )
