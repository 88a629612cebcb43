"""All findings of an analysis, page by page, as exports read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testigo.authority.read import Cursor
from testigo.errors import CollectionChanged, StateConflict
from testigo.evidence.findings import FindingFilter, findings
from testigo.evidence.listing import AnalysisDetail, analysis
from testigo.evidence.model import AnalysisId, FindingView
from testigo.store.database import Database

__all__ = ["Collected"]

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Collected:
    """An analysis whose evidence is published, and the way to its findings."""

    db: Database
    detail: AnalysisDetail

    @classmethod
    def of(cls, db: Database, analysis_id: AnalysisId) -> Collected:
        """The analysis as it stands. Raises `NotFound`, and `StateConflict` for one without published evidence."""
        detail = db.run(analysis, analysis_id)
        if not detail.view.persisted:
            raise StateConflict(
                f"The analysis {analysis_id} is {detail.view.state}: no evidence of it is published.",
                state=str(detail.view.state),
                remedy="Wait until it is complete, or look at why it is not.",
            )
        return cls(db, detail)

    def findings(self, analyser: str | None = None) -> Iterator[FindingView]:
        """All its findings, or those of one analyser, the worst first.

        Raises `CollectionChanged` as soon as they are not those of the revision that `detail` tells.
        """
        view = self.detail.view
        wanted = FindingFilter(analyser=analyser)
        after: Cursor | None = None
        while True:
            found = self.db.run(findings, view.id, wanted, after=after, limit=PAGE)
            if found.revision != view.revision:
                raise CollectionChanged(
                    f"The findings of analysis {view.id} changed while they were read.", revision=found.revision
                )
            yield from found.page.items
            after = found.page.next
            if after is None:
                return
