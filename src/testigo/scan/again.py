"""reprocess_analysis: do an analysis's work again, as a new one that supersedes it (spec D-10, D-18).

What is published stays as it is, with all that was decided about it: the same analysers look at the same files anew.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from testigo.authority.actions import Action, new_id
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import StateConflict
from testigo.evidence.analyses import BegunAnalysis, begin_within, begun_by
from testigo.evidence.following import left_by_parts
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, NewAnalysis
from testigo.evidence.transport.request import Request
from testigo.rules import fields
from testigo.scan.asked import QUEUE, jobs, request_of

__all__ = ["looked_at", "reprocess_analysis"]


def reprocess_analysis(
    c: Connection,
    analysis_id: AnalysisId,
    *,
    queue: str = QUEUE,
    new_analysis_id: AnalysisId | None = None,
    action: Action,
) -> BegunAnalysis:
    """Begin a new analysis of the same project, source, files and gate, whose jobs wait in `queue`.

    Raises `NotFound`; `StateConflict` for an analysis that has not ended, for one that has a successor already, and
    for one whose jobs are not kept any more.
    """
    fields.must_be_id(analysis_id, field="analysis")
    fields.name(queue, field="queue")
    made = new_analysis_id or AnalysisId(new_id())
    fields.must_be_id(made, field="new_analysis_id")
    digest = digest_of(action, "evidence.reprocess", [analysis_id, queue])
    return begun_by(
        exactly_once(c, action, digest, lambda: begin_within(c, _again(c, analysis_id, queue, made), action))
    )


def looked_at(c: Connection, analysis_id: AnalysisId) -> tuple[Path, ...]:
    """The folders that an analysis is of, and the reports of other tools that were read for it and are still there.

    Where a server has to look for the same to be done again. Raises `NotFound`.
    """
    fields.must_be_id(analysis_id, field="analysis")
    source = Path(analysis(c, analysis_id).view.source)
    asked = [request for request in _requests(c, analysis_id) if request is not None]
    roots = list(dict.fromkeys(Path(request.root) for request in asked)) or [source]
    files = (Path(request.options["file"]) for request in asked if "file" in request.options)
    return (*roots, *(path for path in files if path.is_file()))


def _requests(c: Connection, analysis_id: AnalysisId) -> list[Request | None]:
    return [request_of(c, left.job_id) for left in left_by_parts(c, analysis_id)]


def _again(c: Connection, analysis_id: AnalysisId, queue: str, made: AnalysisId) -> NewAnalysis:
    detail = analysis(c, analysis_id)
    view, own = detail.view, detail.gate.policy_revision is None
    requests = _requests(c, analysis_id)
    asked = [request for request in requests if request is not None]
    if len(asked) < len(requests):
        raise StateConflict(
            f"What the jobs of the analysis {analysis_id} were asked is not kept any more.",
            field="analysis",
            remedy="Scan the source anew.",
        )
    new = jobs(asked, queue, made)
    return NewAnalysis(
        view.project,
        view.source,
        view.analysers,
        new.parts,
        new.publish,
        policy=detail.gate.policy if own else None,
        baseline=view.baseline,
        scope=view.scope,
        left_out=view.left_out,
        supersedes=view.id,
        id=made,
    )
