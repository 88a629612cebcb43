"""The end of the demo of a scan: what an analysis tells, and what the database says of its publication."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from testigo.cli.scan import words
from testigo.cli.tables import console

if TYPE_CHECKING:
    from testigo.demo.scan import Scanned

__all__ = ["answer", "tell"]


def answer(scanned: Scanned) -> dict[str, object]:
    """The analysis as `testigo scan` answers it, with what the database says of it beside."""
    told = words.answer(scanned.detail, scanned.scope, scanned.seconds)
    return {**told, "killed": scanned.killed, "left": scanned.left, "proof": asdict(scanned.proof)}


def tell(scanned: Scanned) -> None:
    """What was found, and whether it is there once and whole."""
    out = console()
    out.print()
    words.tell(scanned.detail, scanned.scope, scanned.seconds)
    out.print()
    proof = scanned.proof
    if scanned.killed:
        out.print(f"The publisher was killed with everything inserted: {scanned.left} findings were left of that.")
    out.print(
        f"The database has {proof.rows:,} findings of {proof.published} results, "
        f"and {proof.lost} lost run{'' if proof.lost == 1 else 's'} of the publisher."
    )
    verdict = "There is one analysis, whole." if scanned.holds else "This must not be."
    out.print(verdict, style="bold green" if scanned.holds else "bold red")
