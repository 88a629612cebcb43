"""The end of the demo: one object for programs, sentences for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from testigo.cli.demo.further import further
from testigo.cli.tables import console, print_facts
from testigo.cli.written import size

if TYPE_CHECKING:
    from testigo.cli.demo.place import Place
    from testigo.demo.engine import Killed, Played
    from testigo.demo.proof import Findings, Proof

__all__ = ["answer", "tell"]


def answer(played: Played, place: Place) -> dict[str, object]:
    """Everything that was counted; `database` tells where it can be looked at, and is null where it is gone."""
    counted = asdict(played.proof)
    findings = counted.pop("findings")
    findings["often"] = dict(findings["often"])
    return {
        **counted,
        "seconds": round(played.seconds, 2),
        "database": place.database,
        "schema": place.schema,
        "queue": played.queue,
        "killed": asdict(played.killed),
        "findings": findings,
    }


def tell(played: Played, place: Place, program: str, *, stays: bool) -> None:
    """What was done, what was killed, what the database says of every job, and how `program` goes on.

    A demo that `stays` opens the panel by itself.
    """
    proof = played.proof
    out = console()
    out.print()
    out.print(_found(proof.findings))
    out.print(f"Killed with SIGKILL meanwhile: {_victims(played.killed)}.")
    out.print("What the database alone says of it, now that all processes are gone:")
    out.print()
    print_facts((f"  {name:10}{number:>6}", meaning) for name, number, meaning in _counts(proof))
    out.print()
    out.print(_verdict(proof), style="bold green" if proof.holds else "bold red")
    listed = f"jobs list --queue {played.queue}"
    ahead = further(place, program, demo="demo engine", listed=listed, then="init my-project", stays=stays)
    out.print(f"It took {played.seconds:.0f} seconds. {ahead}")


def _found(found: Findings) -> str:
    files = "1 file was" if found.files == 1 else f"{found.files:,} files were"
    told = f"{files} looked at: {size(found.size_bytes)}, {found.lines:,} lines, {found.tokens:,} tokens."
    if not found.linted:
        return f"{told}\nruff was not asked, for it is not here: pip install 'testigo[demo]'."
    often = ", ".join(f"{rule} ({times:,})" for rule, times in found.often)
    if not often:
        return f"{told}\nruff has no remarks."
    return f"{told}\nruff has {found.diagnostics:,} remarks, most often {often}."


def _victims(killed: Killed) -> str:
    named = (
        ("a runner", killed.runners),
        ("a whole worker", killed.workers),
        ("the database server", killed.databases),
    )
    return ", ".join(name for name, count in named if count) or "nothing"


def _counts(proof: Proof) -> list[tuple[str, int, str]]:
    degraded = ("  of these", proof.degraded, "within limits: not all of the file is Python")
    late = ("late", proof.late, "results came after their run was given to another, and changed nothing")
    return [
        ("submitted", proof.submitted, "jobs were accepted; from then on none may be lost"),
        ("succeeded", proof.succeeded, "jobs brought a result"),
        *([degraded] if proof.degraded else []),
        ("failed", proof.failed, "jobs ended without one"),
        ("recovered", proof.recovered, "runs died with their process, and their jobs ran again"),
        *([late] if proof.late else []),
        ("lost", proof.lost, "jobs have no end"),
        ("doubled", proof.doubled, "jobs have more than one end"),
        ("gaps", proof.gaps, f"numbers are missing in the history of {proof.events:,} events"),
    ]


def _verdict(proof: Proof) -> str:
    if proof.holds:
        return "Nothing was lost, nothing was counted twice, and the history has no gap."
    return "This must not be. Please tell us: keep the database with --data, and open an issue."
