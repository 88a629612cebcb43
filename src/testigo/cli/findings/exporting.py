"""`testigo findings export`: published findings as SARIF, CSV or OpenVEX, into a file or to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.analysed import AnalysisRef, analysis_of
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse

if TYPE_CHECKING:
    from testigo.evidence.exports.collected import Collected

__all__ = ["Form", "group"]

group = call.group("findings", "")


class Form(StrEnum):
    """As what findings are written."""

    SARIF = "sarif"
    CSV = "csv"
    OPENVEX = "openvex"


@command(
    group,
    "export",
    "findings export shop > shop.sarif",
    "findings export 0198f3c2-… --form csv --output findings.csv",
    "findings export shop --form openvex --output shop.vex.json",
)
def export(
    here: Call,
    analysis: AnalysisRef,
    form: Annotated[
        Form, typer.Option("--form", "-f", metavar="FORM", help="sarif (2.1.0), csv or openvex (what was decided).")
    ] = Form.SARIF,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here, whole or not at all.", show_default="stdout"
        ),
    ] = None,
) -> None:
    """Export the published findings of an analysis.

    They are all of one revision, redacted, and with what was decided. With --json, the file is written and the answer
    tells of it. CSV is safe to open in a spreadsheet: no cell is computed.
    """
    from testigo.evidence.exports.collected import Collected

    if here.json and output is None:
        raise Misuse("With --json, say --output: both would be written to stdout.")
    with here.database() as db:
        collected = Collected.of(db, analysis_of(db, analysis))
        pieces = _written(collected, form)
        if output is None:
            for piece in pieces:
                sys.stdout.write(piece)
            return
        _write(output, pieces)
    view = collected.detail.view
    answer = {"analysis": view.id, "revision": view.revision, "form": form, "findings": view.findings}
    here.answer(
        answer | {"file": str(output), "bytes": output.stat().st_size},
        lambda: print(f"{output} tells of the {view.findings:,} findings of {view.id}, at revision {view.revision}."),
    )


def _written(collected: Collected, form: Form) -> Iterator[str]:
    if form is Form.SARIF:
        from testigo.evidence.exports.sarif import sarif

        return sarif(collected)
    if form is Form.CSV:
        from testigo.evidence.exports.table import table

        return table(collected)
    from testigo.evidence.exports.openvex import openvex

    return openvex(collected)


def _write(output: Path, pieces: Iterator[str]) -> None:
    """Write the file beside its place, and put it there when it is whole."""
    new = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with new.open("x", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        new.replace(output)
    except OSError as error:
        raise Misuse(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        new.unlink(missing_ok=True)
