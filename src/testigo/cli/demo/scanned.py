"""The end of the demo of a scan: what an analysis tells, and what the database says of its publication."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from testigo.cli.demo.further import further
from testigo.cli.scan import words
from testigo.cli.tables import console, print_facts

if TYPE_CHECKING:
    from testigo.cli.demo.place import Place
    from testigo.demo.scan import Proof, Scanned

__all__ = ["answer", "tell"]


def answer(scanned: Scanned, place: Place) -> dict[str, object]:
    """The analysis as `testigo scan` answers it, with what the database says of it beside, and where that is."""
    told = words.answer(scanned.detail, scanned.scope, scanned.seconds)
    proof = {"killed": scanned.killed, "left": scanned.left, "proof": asdict(scanned.proof)}
    return {**told, **proof, "database": place.database, "schema": place.schema}


def tell(scanned: Scanned, place: Place, program: str, *, stays: bool) -> None:
    """What was found, what the gate says, whether it is there once and whole, and how `program` goes on.

    A demo that `stays` opens the panel by itself.
    """
    out = console()
    out.print()
    words.tell(scanned.detail, scanned.scope, scanned.seconds)
    out.print()
    if scanned.killed:
        out.print("Killed with SIGKILL meanwhile: the publisher, when it had inserted everything.")
    out.print("What the database alone says of it, now that all processes are gone:")
    out.print()
    print_facts((f"  {name:12}{number:>6,}", meaning) for name, number, meaning in _counts(scanned, scanned.proof))
    out.print()
    out.print(_verdict(scanned), style="bold green" if scanned.holds else "bold red")
    listed = f"findings list {scanned.detail.view.id}"
    out.print(further(place, program, demo="demo", listed=listed, then="scan PATH", stays=stays))


def _counts(scanned: Scanned, proof: Proof) -> list[tuple[str, int, str]]:
    return [
        ("left", scanned.left, "findings were there right after the kill"),
        ("lost", proof.lost, "runs of the publisher died with it, and its job ran again"),
        ("published", proof.published, "results of jobs were published, each once"),
        ("findings", proof.rows, "are there, as many as those results have together"),
        ("transactions", proof.transactions, "wrote all of them"),
    ]


def _verdict(scanned: Scanned) -> str:
    if scanned.holds:
        return "There is one analysis, whole."
    return "This must not be. Please tell us: keep the database with --data, and open an issue."
