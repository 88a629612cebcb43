"""The end of the demo: one object for programs, sentences for people."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from testigo.cli.tables import console, print_facts
from testigo.cli.written import size
from testigo.store.urls import shown

if TYPE_CHECKING:
    from testigo.demo.engine import Killed, Played
    from testigo.demo.proof import Findings, Proof

__all__ = ["answer", "called", "tell"]


def answer(played: Played, kept: str | None, schema: str) -> dict[str, object]:
    """Everything that was counted; `database` tells where it can be looked at, and is null where it is gone."""
    counted = asdict(played.proof)
    findings = counted.pop("findings")
    findings["often"] = dict(findings["often"])
    return {
        **counted,
        "seconds": round(played.seconds, 2),
        "database": shown(kept) if kept else None,
        "schema": schema,
        "queue": played.queue,
        "killed": asdict(played.killed),
        "findings": findings,
    }


def tell(played: Played, at: str | None, program: str, *, stays: bool) -> None:
    """What was done, what was killed, what the database says of every job, and how `program` goes on.

    `at` are the options that lead a command to the database, None where that is gone. A demo that `stays` goes on
    by itself.
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
    further = "" if stays else f" {_further(played.queue, at, program)}"
    out.print(f"It took {played.seconds:.0f} seconds.{further}")


def called() -> str:
    """How this program is called from here."""
    if shutil.which("testigo"):
        return "testigo"
    own = sys.argv[0]
    return f"{sys.executable} -m testigo" if own.endswith("__main__.py") else own


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


def _further(queue: str, at: str | None, program: str) -> str:
    if at is None:
        gone = "The database is gone; --data DIR keeps it, and --stay shows it in the panel."
        return f"{gone}\nGo on: {program} init my-project"
    listed = f"{program} jobs list --queue {queue} {at}"
    return f"The database is kept: look at it with\n{listed}\nor in the panel with\n{program} serve {at}"
