"""`testigo findings delete`: remove a finding, which is no decision about it (spec D-18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Right
from testigo.cli import call
from testigo.cli.asking import agree
from testigo.cli.call import Call, command
from testigo.cli.findings.looking import FindingRef
from testigo.cli.options import Yes
from testigo.cli.ordering import ordered

if TYPE_CHECKING:
    from testigo.evidence.review import DeletedFinding

__all__ = ["group"]

group = call.group("findings", "")


@command(group, "delete", "findings delete 0198f3c2-… --reason 'it names somebody' --yes")
def delete(
    here: Call,
    finding: FindingRef,
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; the audit keeps it.", show_default=False)
    ],
    revision: Annotated[
        int, typer.Option("--revision", metavar="N", min=1, help="The revision of the finding that you have seen.")
    ] = 1,
    yes: Yes = False,
) -> None:
    """Remove a finding and what was decided about it. It cannot be brought back.

    It is no decision: the next analysis finds it again, and what the project knows of it over its analyses stays. The
    gate is judged anew at once. While a job of the analysis has not ended nothing is deleted.
    """
    from testigo.evidence.model import FindingId
    from testigo.evidence.review import delete_finding

    agree(f"Delete the finding {finding}?", yes=yes)
    receipt = ordered(
        here,
        "findings.delete",
        f"finding:{finding}",
        lambda c, action: delete_finding(
            c, FindingId(finding), expected_revision=revision, reason=reason, action=action
        ),
        reason=reason,
        right=Right.FORGET,
    )
    answer = {
        "finding": finding,
        "analysis": receipt.analysis_id,
        "verdict": receipt.verdict,
        "revision": receipt.revision,
    }
    here.answer(answer, lambda: _tell(receipt))


def _tell(receipt: DeletedFinding) -> None:
    print(f"{receipt.finding_id}  is deleted")
    print(f"The gate of the analysis {receipt.analysis_id}: {receipt.verdict}.")
