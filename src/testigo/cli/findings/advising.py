"""`testigo findings advise`: what an advisor thinks of a finding, which decides nothing (spec D-19)."""

from __future__ import annotations

from typing import Annotated

import typer

from testigo.access.roles import Right
from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.findings.looking import FindingRef
from testigo.cli.ordering import ordered
from testigo.rules.evidence.review import Advice, Decision

__all__ = ["group"]

group = call.group("findings", "")


@command(
    group,
    "advise",
    "findings advise 0198f3c2-… --advisor a-model --suggests false_positive --because 'the value is a test fixture'",
    "findings advise 0198f3c2-… --withdraw",
)
def advise(
    here: Call,
    finding: FindingRef,
    advisor: Annotated[
        str | None, typer.Option("--advisor", metavar="NAME", help="Who says so.", show_default=False)
    ] = None,
    suggests: Annotated[
        Decision | None,
        typer.Option("--suggests", metavar="DECISION", help="What they would decide.", show_default=False),
    ] = None,
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Why.")] = "",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Keep no advice about it any more.")] = False,
) -> None:
    """Keep what an advisor thinks of a finding, for people to read.

    An advisor is somebody, or a model. No decision, revision or gate moves. A later advice replaces an earlier one.
    """
    if withdraw and (advisor or suggests or because):
        raise Misuse("--withdraw keeps no advice: leave the other options out.")
    if not withdraw and (advisor is None or suggests is None):
        raise Misuse("An advice has an --advisor and --suggests a decision; --withdraw takes it back.")
    from testigo.evidence.model import FindingId
    from testigo.evidence.review import advise as advised

    advice = None if advisor is None or suggests is None else Advice(advisor, suggests, because)
    ordered(
        here,
        "findings.advise",
        f"finding:{finding}",
        lambda c, action: advised(c, FindingId(finding), advice, action=action),
        right=Right.REVIEW,
    )
    says = "has no advice any more" if advice is None else f"{advice.suggests} would be decided, says {advice.advisor}"
    here.answer({"finding": finding, "advised": advice is not None}, lambda: print(f"{finding}  {says}"))
