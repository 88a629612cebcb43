"""What `scan` and `analyses reprocess` share: an analysis is carried out, shown, and left by its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from testigo.cli.call import Call
from testigo.cli.scan.screen import watched
from testigo.errors import NotFound, Unfulfilled
from testigo.rules.evidence.gate import Verdict
from testigo.scan.crew import Crew
from testigo.scan.running import cancelled, followed

if TYPE_CHECKING:
    from testigo.evidence.listing import AnalysisDetail
    from testigo.evidence.model import AnalysisId
    from testigo.store.database import Database

__all__ = ["carried_out", "leave"]

GATE_FAILED, GATE_INCOMPLETE = 3, 4


def carried_out(
    here: Call,
    database: Database,
    analysis_id: AnalysisId,
    begin: Callable[[], object],
    *,
    queue: str | None,
    roots: Iterable[Path],
) -> AnalysisDetail:
    """What became of an analysis that `begin` begins, by a crew of our own for its `queue`; by others without one.

    The crew looks at the `roots`.
    """
    with nullcontext() if queue is None else Crew(here.place.url, here.place.schema, queue, roots=roots) as crew:
        if crew is not None:
            crew.start()
        detail = _followed(here, database, analysis_id, begin, crew)
        if crew is not None:
            crew.dismiss()
    return detail


def leave(detail: AnalysisDetail) -> None:
    """Exit with the status that the gate's verdict has; return if it passed."""
    verdict = detail.gate.verdict if detail.view.persisted else None
    match verdict:
        case Verdict.PASSED:
            return
        case Verdict.FAILED:
            raise typer.Exit(GATE_FAILED)
        case Verdict.INCOMPLETE:
            raise typer.Exit(GATE_INCOMPLETE)
    raise typer.Exit(Unfulfilled.exit_status)


def _followed(
    here: Call, database: Database, analysis_id: AnalysisId, begin: Callable[[], object], crew: Crew | None
) -> AnalysisDetail:
    """What became of the analysis; whatever ends the command before that cancels it."""
    try:
        with watched(quiet=here.json, served=crew is None) as shows:
            begin()
            return followed(database, analysis_id, shows=shows, check=crew.check if crew else lambda: None)
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        why = "The scan was stopped." if stopped else f"The scan cannot go on: {error}"
        with suppress(NotFound):  # it may not have begun
            if cancelled(database, analysis_id, reason=why, action=here.action()):
                here.note(f"The analysis {analysis_id} is cancelled.")
        raise
