"""One scan from its beginning to its end, as whoever asked for it sees it."""

from __future__ import annotations

import time
from collections.abc import Callable

from testigo.authority.actions import Action
from testigo.errors import StateConflict
from testigo.evidence.abandoned import end_abandoned
from testigo.evidence.analyses import cancel_analysis
from testigo.evidence.listing import AnalysisDetail, analysis
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.scan.standing import Standing, standing
from testigo.store.database import Database

__all__ = ["cancelled", "followed"]

LOOK_SECONDS = 0.1


def followed(
    database: Database,
    analysis_id: AnalysisId,
    *,
    shows: Callable[[Standing], object],
    check: Callable[[], object],
) -> AnalysisDetail:
    """Show how an analysis stands until it has ended, and return what became of it.

    `check` raises if whoever does the work is gone. One that ends without evidence says why. Where the job that should
    have published it is reprocessed, it goes on.
    """
    while True:
        now = database.run(standing, analysis_id)
        shows(now)
        if now.ended:
            database.run(end_abandoned, only=analysis_id)
            found = database.run(analysis, analysis_id)
            if found.view.state is not AnalysisState.RUNNING:
                return found
        check()
        time.sleep(LOOK_SECONDS)


def cancelled(database: Database, analysis_id: AnalysisId, *, reason: str, action: Action) -> bool:
    """Cancel the analysis with its jobs; False for one whose evidence was published before."""
    try:
        return database.run(cancel_analysis, analysis_id, reason=reason, action=action).ended
    except StateConflict:
        return False
