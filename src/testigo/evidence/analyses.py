"""begin_analysis, finish and cancel_analysis: how an analysis begins, and how it ends without evidence (spec D-21)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.cancel import cancel_within
from testigo.authority.receipts import Kept, digest_of, exactly_once
from testigo.authority.submissions import How, NewJob, content
from testigo.authority.submit import submit_within
from testigo.errors import Conflict, Invalid, KeyConflict, NotFound, StateConflict
from testigo.evidence.collection import Locked, lock
from testigo.evidence.following import open_jobs
from testigo.evidence.model import AnalysisId, AnalysisState, NewAnalysis
from testigo.evidence.projects import begun, hold
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.evidence.gate import Policy
from testigo.rules.evidence.paths import why_not_canonical
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = [
    "BegunAnalysis",
    "EndedAnalysis",
    "begin_analysis",
    "begin_within",
    "begun_by",
    "cancel_analysis",
    "end_within",
    "finish",
]


@dataclass(frozen=True, slots=True)
class BegunAnalysis:
    """The receipt of a beginning: the analysis, its number in its project, and its jobs in the order of its parts.

    `wakes` names the queues in which there is work.
    """

    analysis_id: AnalysisId
    project: str
    n: int
    jobs: tuple[JobId, ...]
    publish_job: JobId
    replayed: bool
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedAnalysis:
    """The receipt of an end without evidence: what the analysis is now; `ended` is False where it had ended before.

    `wakes` names the sessions that hold what is to stop.
    """

    analysis_id: AnalysisId
    state: AnalysisState
    ended: bool
    replayed: bool
    wakes: tuple[str, ...] = ()


_BEGIN = Statement(
    """
    INSERT INTO testigo.analysis (id, project, n, state, source, analysers, scope, left_out, policy, baseline_id,
                                  supersedes, publish_job, actor, action, began_at)
    VALUES (CAST(:id AS uuid), :project, :n, 'running', :source, CAST(:analysers AS text[]), CAST(:scope AS text[]),
            :left_out, :policy, CAST(:baseline AS uuid), CAST(:supersedes AS uuid), CAST(:publish_job AS uuid), :actor,
            :action, now())
    ON CONFLICT (id) DO NOTHING
    RETURNING 1
    """
)

_PARTS = Statement(
    """
    INSERT INTO testigo.part (analysis_id, n, job_id, analyser, files)
    SELECT CAST(:id AS uuid), p.n - 1, p.job_id, p.analyser, p.files
    FROM unnest(CAST(:jobs AS uuid[]), CAST(:analysers AS text[]), CAST(:files AS integer[]))
             WITH ORDINALITY AS p(job_id, analyser, files, n)
    """
)

_PUBLISHED = Statement("SELECT project FROM testigo.analysis WHERE id = CAST(:id AS uuid) AND scanner_persisted")

_SUPERSEDED = Statement(
    """
    SELECT a.project, a.state,
           (SELECT CAST(later.id AS text) FROM testigo.analysis later WHERE later.supersedes = a.id) AS successor
    FROM testigo.analysis a
    WHERE a.id = CAST(:id AS uuid)
    """
)

_END = Statement(
    """
    UPDATE testigo.analysis
    SET state = :state, reason = :reason, ended_at = now(), revision = revision + 1
    WHERE id = CAST(:id AS uuid)
    """
)


def begin_analysis(c: Connection, new: NewAnalysis, *, action: Action) -> BegunAnalysis:
    """Begin an analysis: its project, made if it is new, its row and all its jobs, or nothing of it.

    Raises `Invalid` naming the field, also for another project's baseline, `NotFound` for a baseline that is no
    published analysis, `KeyConflict` when the key of a job names a job already (a key of its own needs every analysis),
    and what `submit` raises.
    """
    _check(new)  # before its content is told
    digest = digest_of(action, "evidence.begin", _content(new))
    return begun_by(exactly_once(c, action, digest, lambda: begin_within(c, new, action)))


def begun_by(receipt: Kept) -> BegunAnalysis:
    """The receipt of a beginning as it is told, from what `begin_within` answered."""
    answer = receipt.answer
    return BegunAnalysis(
        AnalysisId(answer["id"]),
        answer["project"],
        answer["n"],
        tuple(JobId(job) for job in answer["jobs"]),
        JobId(answer["publish"]),
        receipt.replayed,
        tuple(answer["wakes"]),
    )


def finish(
    c: Connection, analysis_id: AnalysisId, state: AnalysisState, *, reason: str, action: Action
) -> EndedAnalysis:
    """End an analysis that will have no evidence, as `failed` or `cancelled`; one that has ended stays as it is.

    Raises `NotFound`, and `Invalid` without a reason.
    """
    if state not in (AnalysisState.FAILED, AnalysisState.CANCELLED):
        raise Invalid("only publication completes an analysis", field="state", limit="failed, cancelled")
    return _finish(c, analysis_id, AnalysisState(state), reason, action, stops=False)


def cancel_analysis(c: Connection, analysis_id: AnalysisId, *, reason: str, action: Action) -> EndedAnalysis:
    """Cancel an analysis and those of its jobs that have not ended; published evidence stays (spec D-20).

    Raises `NotFound`; `StateConflict` for one whose evidence is published; and `Invalid` without a reason.
    """
    return _finish(c, analysis_id, AnalysisState.CANCELLED, reason, action, stops=True)


def end_within(
    c: Connection,
    locked: Locked,
    state: AnalysisState,
    reason: str,
    action: Action,
    *,
    stops: bool,
    holds: Sequence[JobId] = (),
) -> tuple[str, ...]:
    """End an analysis that runs, as a part of a command, and cancel its open jobs if they are to stop.

    With them are held, until the command ends, those of its jobs that have ended and that it `holds`. Returns the
    sessions that hold what is to stop.
    """
    _END.rows(c, id=locked.id, state=str(state), reason=reason)
    jobs = [*open_jobs(c, locked.id), *holds] if stops else []
    if not jobs:
        return ()
    _, wakes = cancel_within(c, jobs, note=reason, action=action)
    return tuple(wakes)


def _finish(
    c: Connection, analysis_id: AnalysisId, state: AnalysisState, reason: str, action: Action, *, stops: bool
) -> EndedAnalysis:
    fields.must_be_id(analysis_id, field="analysis")
    said = discreet(reason).strip()
    if not said:
        raise Invalid("Say why: whoever looks for its findings will want to know.", field="reason")
    digest = digest_of(action, "evidence.finish", [analysis_id, state, said, stops])

    def body() -> object:
        locked = lock(c, analysis_id)
        if stops and locked.persisted:
            raise StateConflict(
                f"The evidence of the analysis {analysis_id} is published, and is not cancelled any more.",
                state=str(locked.state),
                remedy="Look at the analysis as it is now.",
            )
        if locked.state is not AnalysisState.RUNNING:
            return [str(locked.state), False, []]
        return [str(state), True, list(end_within(c, locked, state, said, action, stops=stops))]

    receipt = exactly_once(c, action, digest, body)
    now, ended, wakes = receipt.answer
    return EndedAnalysis(analysis_id, AnalysisState(now), ended, receipt.replayed, tuple(wakes))


def begin_within(c: Connection, new: NewAnalysis, action: Action) -> dict[str, object]:
    """Begin it as a part of a command that keeps its own receipt; the answer is for `begun_by`."""
    _check(new)
    held = hold(c, new.project, make=True)
    if new.supersedes is not None:
        _check_superseded(c, new)
    if new.baseline is not None:
        _check_baseline(c, new)
    n = begun(c, new.project)
    made = _BEGIN.rows(
        c,
        id=new.id,
        project=new.project,
        n=n,
        source=discreet(new.source),
        analysers=list(new.analysers),
        scope=None if new.scope is None else list(new.scope),
        left_out=None if new.left_out is None else json.dumps(dict(new.left_out), ensure_ascii=False),
        supersedes=new.supersedes,
        policy=None if new.policy is None else json.dumps(new.policy.to_json(), separators=(",", ":")),
        baseline=new.baseline or held.baseline_id,
        publish_job=new.publish.id,
        actor=action.actor,
        action=action.id,
    )
    if not made:
        raise Conflict(f"The id {new.id} belongs to another analysis.", field="id", remedy="Make a new NewAnalysis.")
    _PARTS.rows(
        c,
        id=new.id,
        jobs=[part.job.id for part in new.parts],
        analysers=[part.analyser for part in new.parts],
        files=[part.files for part in new.parts],
    )
    submitted = submit_within(c, _jobs(new), action=Action(action.actor, f"{action.id}:jobs", action.created_at))
    for job, row in zip(_jobs(new), submitted.jobs, strict=True):
        if row.how is not How.ACCEPTED:
            raise KeyConflict(f"The key {job.key!r} already names a job.", field="key", job=row.job_id)
    return {
        "id": new.id,
        "project": new.project,
        "n": n,
        "jobs": [part.job.id for part in new.parts],
        "publish": new.publish.id,
        "wakes": list(submitted.wakes),
    }


def _check_baseline(c: Connection, new: NewAnalysis) -> None:
    """Refuse what has no evidence, and what another project has: nothing of this one is known by that."""
    row = _PUBLISHED.row(c, id=new.baseline)
    if row is None:
        raise NotFound(f"{new.baseline} is no published analysis.", field="baseline")
    if row.project != new.project:
        raise Invalid(f"The analysis {new.baseline} is another project's.", field="baseline")


def _check_superseded(c: Connection, new: NewAnalysis) -> None:
    """Refuse to do again the work of what goes on, of another project, or of what has a successor already.

    The project is held, so that nobody makes another successor meanwhile; what has ended does not begin again.
    """
    old = _SUPERSEDED.row(c, id=new.supersedes)
    if old is None:
        raise NotFound(f"There is no analysis {new.supersedes}.", field="supersedes")
    if old.project != new.project:
        raise Invalid(f"The analysis {new.supersedes} is another project's.", field="supersedes")
    if AnalysisState(old.state) is AnalysisState.RUNNING:
        raise StateConflict(
            f"The analysis {new.supersedes} has not ended.",
            field="supersedes",
            state=old.state,
            remedy="Wait for its end, or cancel it first.",
        )
    if old.successor is not None:
        raise StateConflict(
            f"The analysis {new.supersedes} has a successor already.",
            field="supersedes",
            successor=old.successor,
            remedy="Reprocess its successor instead.",
        )


def _jobs(new: NewAnalysis) -> list[NewJob]:
    return [*(part.job for part in new.parts), new.publish]


def _check(new: NewAnalysis) -> None:
    fields.must_be_id(new.id, field="id")
    fields.name(new.project, field="project")
    if not tidy(new.source).strip():
        raise Invalid("Say what is analysed.", field="source")
    fields.sequence(new.analysers, field="analysers", most=LIMITS.tags_max)
    for at, name in enumerate(new.analysers):
        fields.name(name, field=f"analysers[{at}]")
    if len(set(new.analysers)) < len(new.analysers) or not new.analysers:
        raise Invalid("analysers are needed, each once", field="analysers")
    fields.sequence(new.parts, field="parts", most=LIMITS.parents_max)
    for at, part in enumerate(new.parts):
        if part.analyser not in new.analysers:
            raise Invalid("it is not among those that are asked for", field=f"parts[{at}].analyser")
        fields.whole(part.files, field=f"parts[{at}].files", low=0, high=fields.INTEGER_MAX)
    if set(new.publish.parents) != {part.job.id for part in new.parts}:
        raise Invalid("it waits for the jobs of all parts, and for no other", field="publish.parents")
    if new.scope is not None:
        fields.sequence(new.scope, field="scope", most=LIMITS.parents_max)
        for at, place in enumerate(new.scope):
            if why_not_canonical(place.removesuffix("/")):
                raise Invalid("it is no canonical path", field=f"scope[{at}]")
    if new.left_out is not None:
        fields.sequence(list(new.left_out), field="left_out", most=LIMITS.tags_max)
        for why, files in new.left_out.items():
            fields.name(why, field="left_out")
            fields.whole(files, field=f"left_out.{why}", low=0, high=fields.INTEGER_MAX)
    if new.supersedes is not None:
        fields.must_be_id(new.supersedes, field="supersedes")
    if new.policy is not None:
        Policy.from_json(new.policy.to_json())
    if new.baseline is not None:
        fields.must_be_id(new.baseline, field="baseline")


def _content(new: NewAnalysis) -> list[object]:
    policy = None if new.policy is None else new.policy.to_json()
    parts = [[part.analyser, part.files] for part in new.parts]
    scope = None if new.scope is None else list(new.scope)
    return [
        new.id,
        new.project,
        new.source,
        list(new.analysers),
        parts,
        content(_jobs(new)),
        policy,
        new.baseline,
        scope,
        None if new.left_out is None else dict(new.left_out),
        new.supersedes,
    ]
