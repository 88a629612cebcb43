"""Naming an analysis on the command line: by its id, or by its project for the newest that is published."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.errors import NotFound

if TYPE_CHECKING:
    from testigo.evidence.model import AnalysisId
    from testigo.store.database import Database

__all__ = ["AnalysisRef", "analysis_of"]

AnalysisRef = Annotated[
    str,
    typer.Argument(
        metavar="ANALYSIS",
        help="The analysis's id, or the name of its project for the newest that is published.",
        show_default=False,
    ),
]

_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def analysis_of(db: Database, named: str) -> AnalysisId:
    """The analysis that is meant; raises `NotFound` for a project without a published one."""
    from testigo.evidence.model import AnalysisId
    from testigo.evidence.projects import project

    if _ID.fullmatch(named):
        return AnalysisId(named)
    latest = db.run(project, named).latest
    if latest is None:
        raise NotFound(f"No analysis of {named!r} is published.", field="analysis", remedy="Scan it: `testigo scan`.")
    return latest
