"""`testigo findings exempt|unexempt`: a risk that a project takes, over all its analyses (spec D-23)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Right
from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.findings.looking import FindingRef, read
from testigo.cli.ordering import ordered
from testigo.cli.written import moment
from testigo.settings import EVIDENCE

if TYPE_CHECKING:
    from testigo.evidence.exemptions import ExemptionSet
    from testigo.evidence.model import Identity

__all__ = ["group"]

group = call.group("findings", "")

DAYS = 90
"""How long an exemption holds unless it is said."""


@command(
    group,
    "exempt",
    "findings exempt 0198f3c2-… --reason 'until the gateway is replaced'",
    "findings exempt 0198f3c2-… --reason 'agreed again' --days 30 --revision 2",
)
def exempt(
    here: Call,
    finding: FindingRef,
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="Why the risk is taken.", show_default=False)
    ],
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            "-d",
            metavar="DAYS",
            min=1,
            max=EVIDENCE.exemption_days_max,
            help="How long it holds.",
            show_default=str(DAYS),
        ),
    ] = None,
    for_ever: Annotated[bool, typer.Option("--for-ever", help="It holds until somebody takes it back.")] = False,
    revision: Annotated[
        int, typer.Option("--revision", metavar="N", min=0, help="The revision of the exemption that you have seen.")
    ] = 0,
) -> None:
    """Take the risk of a finding in its project, for a time.

    The gate does not count it, in this analysis and in later ones. No finding is changed. It ends
    when its time is over, when somebody takes it back, and when a complete analysis does not find it any more. Without
    --revision it is the first exemption of what this finding is; to grant it anew, look at it with `findings show`, and
    name the revision that you have seen.
    """
    if for_ever and days is not None:
        raise Misuse("Say --days or --for-ever, not both.")
    from testigo.evidence.exemptions import exempt as granted

    project, identity = _who(here, finding)
    until = None if for_ever else datetime.now(UTC) + timedelta(days=days or DAYS)
    receipt = ordered(
        here,
        "exemptions.grant",
        f"exemption:{identity.fingerprint}",
        lambda c, action: granted(
            c, project, identity, reason=reason, expected_revision=revision, expires_at=until, action=action
        ),
        reason=reason,
        right=Right.REVIEW,
    )
    ends = "for ever" if until is None else f"until {moment(until.replace(microsecond=0))}"
    _answer(here, finding, receipt, f"is exempt in {project} {ends}", until)


@command(group, "unexempt", "findings unexempt 0198f3c2-… --reason 'the gateway stays'")
def unexempt(
    here: Call,
    finding: FindingRef,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why.")] = "",
    revision: Annotated[
        int, typer.Option("--revision", metavar="N", min=1, help="The revision of the exemption that you have seen.")
    ] = 1,
) -> None:
    """Take an exemption back: what it exempts counts for the gate again."""
    from testigo.evidence.exemptions import end_exemption

    project, identity = _who(here, finding)
    receipt = ordered(
        here,
        "exemptions.end",
        f"exemption:{identity.fingerprint}",
        lambda c, action: end_exemption(c, project, identity, expected_revision=revision, reason=reason, action=action),
        reason=reason,
        right=Right.REVIEW,
    )
    _answer(here, finding, receipt, f"is not exempt in {project} any more", None)


def _who(here: Call, named: str) -> tuple[str, Identity]:
    """The project of a finding, and who it is there over all analyses."""
    from testigo.evidence.model import Identity

    detail = read(here, named)
    return detail.project, Identity(detail.view.finding.analyser, detail.view.finding.fingerprint)


def _answer(here: Call, named: str, receipt: ExemptionSet, now: str, until: datetime | None) -> None:
    answer = {
        "finding": named,
        "project": receipt.project,
        "identity": receipt.identity,
        "expires_at": until,
        "revision": receipt.revision,
        "verdict": receipt.verdict,
    }
    here.answer(answer, lambda: _tell(named, receipt, now))


def _tell(named: str, receipt: ExemptionSet, now: str) -> None:
    print(f"{named}  {now}, at revision {receipt.revision}")
    if receipt.verdict is not None:
        print(f"The gate of the newest analysis of {receipt.project}: {receipt.verdict}.")
