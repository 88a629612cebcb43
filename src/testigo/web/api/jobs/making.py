"""Shapes of jobs made from what the readings return, for whoever asks."""

from __future__ import annotations

from typing import Any

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.explain import Explanation, Finding
from testigo.authority.read import JobView, LateResult, Related
from testigo.journal.history import Run
from testigo.web.api.jobs.shown import (
    ErrorShape,
    ExplanationShape,
    FindingShape,
    JobShape,
    LateResultShape,
    ProgressShape,
    RelatedShape,
    RunShape,
)
from testigo.web.api.veil import veiled_explanation, veiled_job, veiled_late, veiled_run

__all__ = ["explanation_shape", "job_shape", "late_shape", "related_shape", "run_shape"]


def job_shape(view: JobView, who: Who) -> JobShape:
    """A job as it stands."""
    sees = who.may(Right.DOCUMENTS)
    shown = view if sees else veiled_job(view)
    members = {name: getattr(shown, name) for name in JobShape.model_fields if hasattr(shown, name)}
    if shown.error is not None:
        members["error"] = ErrorShape(**{name: shown.error.get(name) for name in ErrorShape.model_fields})
    if shown.progress is not None:
        progress = ProgressShape.model_validate(shown.progress)
        members["progress"] = progress if sees else progress.model_copy(update={"note": None})
    return JobShape.model_validate({**members, "redacted": not sees})


def explanation_shape(found: Explanation, who: Who) -> ExplanationShape:
    """Why a job does not run."""
    sees = who.may(Right.DOCUMENTS)
    shown = found if sees else veiled_explanation(found)
    return ExplanationShape(
        job=shown.job_id,
        state=shown.state,
        code=shown.code,
        text=shown.text,
        facts=dict(shown.facts),
        until=shown.until,
        blockers=tuple(map(_finding, shown.blockers)),
        redacted=not sees,
    )


def run_shape(run: Run, who: Who) -> RunShape:
    """A run, with what the event tells that ended it."""
    shown = run if who.may(Right.DOCUMENTS) else veiled_run(run)
    ending: dict[str, Any] | None = None
    if shown.ending is not None:
        ending = shown.ending.model_dump(mode="json", exclude_none=True)
    members = {name: getattr(shown, name) for name in RunShape.model_fields}
    return RunShape.model_validate({**members, "ending": ending})


def late_shape(late: LateResult, who: Who) -> LateResultShape:
    """A late result."""
    sees = who.may(Right.DOCUMENTS)
    shown = late if sees else veiled_late(late)
    members = {name: getattr(shown, name) for name in LateResultShape.model_fields if hasattr(shown, name)}
    return LateResultShape.model_validate({**members, "job": shown.job_id, "redacted": not sees})


def related_shape(related: Related) -> RelatedShape:
    """Another job."""
    return RelatedShape(job=related.job_id, **{name: getattr(related, name) for name in Related._fields[1:]})


def _finding(finding: Finding) -> FindingShape:
    return FindingShape(code=finding.code, text=finding.text, facts=dict(finding.facts), until=finding.until)
