"""Findings: listed, looked at, decided, exempted and deleted, each as it was seen (spec D-16 to D-19, D-23)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from testigo.access.roles import Right
from testigo.errors import CollectionChanged, CursorInvalid, Invalid, NotFound, RevisionMismatch, StateConflict
from testigo.evidence.exemptions import ExemptionSet, end_exemption, exempt
from testigo.evidence.findings import FindingDetail, FindingFilter, finding, findings
from testigo.evidence.model import AnalysisId, FindingId, Identity
from testigo.evidence.review import advise, decide_many, delete_finding
from testigo.rules.evidence.review import Advice
from testigo.web.api import dossiers, examples
from testigo.web.api.analyses import AnalysisPath
from testigo.web.api.bodies import body
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.found import (
    AdvisedShape,
    Advising,
    DecidedShape,
    Deciding,
    DeletedShape,
    DeletingFinding,
    EndingExemption,
    Exempting,
    ExemptionSetShape,
    FindingDetailShape,
    FindingsQuery,
    FindingsShape,
    HappenedShape,
    SightingShape,
    finding_shape,
)
from testigo.web.api.paging import next_address
from testigo.web.api.projects import exemption_shape
from testigo.web.api.shapes import Id
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("", tags=["findings"])

FindingPath = Annotated[Id, Path(description="The finding's id.")]


@routes.get(
    "/analyses/{analysis_id}/findings",
    Right.READ,
    **told(
        "list_findings",
        "List the findings of an analysis",
        shows={**examples.page(dossiers.FINDING), "revision": 7},
        refuses=(NotFound, CursorInvalid, CollectionChanged),
    ),
)
async def list_findings(
    analysis_id: AnalysisPath, asked: Annotated[FindingsQuery, Query()], request: Request, door: AtDoor, who: Caller
) -> FindingsShape:
    """List findings, the worst first. All pages are of one revision of the collection: 409 once anything changed."""
    if asked.text is not None:
        who.must(Right.DOCUMENTS)
    given = asked.model_dump(exclude={"after", "limit", "severity", "decision"})
    wanted = FindingFilter(severities=asked.severity, decisions=asked.decision, **given)
    found = await door.read(findings, AnalysisId(analysis_id), wanted, after=asked.cursor, limit=asked.limit)
    sees = who.may(Right.DOCUMENTS)
    return FindingsShape(
        items=tuple(finding_shape(view, sees=sees) for view in found.page.items),
        next=next_address(request, found.page.next),
        complete=found.page.complete,
        revision=found.revision,
    )


@routes.post(
    "/analyses/{analysis_id}/decide",
    Right.REVIEW,
    **told(
        "decide_findings",
        "Decide about findings",
        shows=dossiers.DECIDED,
        asks=Deciding,
        asks_so={"findings": {dossiers.FINDING_ID: 1}, "decision": "false_positive", "reason": "a test's password"},
        refuses=(NotFound, CollectionChanged, *AGAIN),
    ),
)
async def decide_findings(
    analysis_id: AnalysisPath,
    asked: Annotated[Deciding, Depends(body(Deciding))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> DecidedShape:
    """Decide the same about findings of one analysis, and renew its gate.

    One that somebody decided since it was seen, or that is gone, is left alone and told in its row.
    """
    objects = [f"finding:{name}" for name in asked.findings]
    made = order(request, who, Right.REVIEW, "findings.decide", objects, asked.reason, action_id=key)
    expected = {FindingId(name): revision for name, revision in asked.findings.items()}
    done = await door.act(
        made,
        lambda c: decide_many(
            c,
            AnalysisId(analysis_id),
            expected,
            asked.decision,
            reason=asked.reason,
            collection_revision=asked.collection_revision,
            action=made.action,
        ),
    )
    return DecidedShape.model_validate(done)


@routes.get(
    "/findings/{finding_id}",
    Right.READ,
    **told("get_finding", "Show a finding", shows=dossiers.FINDING_DETAIL, refuses=(NotFound,)),
)
async def get_finding(finding_id: FindingPath, door: AtDoor, who: Caller) -> FindingDetailShape:
    """Show a finding with its decisions, and what its project knows of its fingerprint over its analyses."""
    found = await door.read(finding, FindingId(finding_id))
    return FindingDetailShape(
        view=finding_shape(found.view, sees=who.may(Right.DOCUMENTS)),
        project=found.project,
        n=found.n,
        revision=found.revision,
        history=tuple(map(HappenedShape.model_validate, found.history)),
        presence=None if found.occurrence is None else found.occurrence.presence,
        exemption=None if found.exemption is None else exemption_shape(found.exemption),
        sightings=tuple(map(SightingShape.model_validate, found.sightings)),
    )


@routes.put(
    "/findings/{finding_id}/advice",
    Right.REVIEW,
    **told(
        "advise_finding",
        "Advise upon a finding",
        shows={"finding_id": dossiers.FINDING_ID},
        asks=Advising,
        asks_so={"advice": dossiers.ADVICE},
        refuses=(NotFound, *AGAIN),
    ),
)
async def put_advice(
    finding_id: FindingPath,
    asked: Annotated[Advising, Depends(body(Advising))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> AdvisedShape:
    """Keep what an advisor, such as a model, thinks of a finding. No decision, revision or gate moves."""
    advice = None if asked.advice is None else Advice(**asked.advice.model_dump())
    made = order(request, who, Right.REVIEW, "findings.advise", [f"finding:{finding_id}"], "", action_id=key)
    done = await door.act(made, lambda c: advise(c, FindingId(finding_id), advice, action=made.action))
    return AdvisedShape(finding_id=done.finding_id)


@routes.post(
    "/findings/{finding_id}/exempt",
    Right.REVIEW,
    **told(
        "exempt_finding",
        "Exempt a finding in its project",
        shows={"project": "shop", "revision": 1, "verdict": "passed"},
        asks=Exempting,
        asks_so={
            "reason": "until the gateway is replaced",
            "expected_revision": 0,
            "expires_at": "2026-12-31T00:00:00Z",
        },
        refuses=(NotFound, RevisionMismatch, *AGAIN),
    ),
)
async def exempt_finding(
    finding_id: FindingPath,
    asked: Annotated[Exempting, Depends(body(Exempting))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> ExemptionSetShape:
    """Take the risk of a finding's fingerprint in its project: gates do not count it, and no finding is changed."""
    project, identity = _identity(await door.read(finding, FindingId(finding_id)))
    objects = [f"exemption:{identity.fingerprint}"]
    made = order(request, who, Right.REVIEW, "exemptions.grant", objects, _said(asked.reason), action_id=key)
    done: ExemptionSet = await door.act(
        made,
        lambda c: exempt(
            c,
            project,
            identity,
            reason=asked.reason,
            expected_revision=asked.expected_revision,
            expires_at=asked.expires_at,
            action=made.action,
        ),
    )
    return ExemptionSetShape.model_validate(done)


@routes.post(
    "/findings/{finding_id}/unexempt",
    Right.REVIEW,
    **told(
        "end_exemption",
        "Take an exemption back",
        shows={"project": "shop", "revision": 2, "verdict": "failed"},
        asks=EndingExemption,
        asks_so={"reason": "the gateway stays", "expected_revision": 1},
        refuses=(NotFound, RevisionMismatch, StateConflict, *AGAIN),
    ),
)
async def unexempt_finding(
    finding_id: FindingPath,
    asked: Annotated[EndingExemption, Depends(body(EndingExemption))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> ExemptionSetShape:
    """Take back the exemption of a finding's fingerprint: it counts for the gate again."""
    project, identity = _identity(await door.read(finding, FindingId(finding_id)))
    objects = [f"exemption:{identity.fingerprint}"]
    made = order(request, who, Right.REVIEW, "exemptions.end", objects, _said(asked.reason), action_id=key)
    revision = asked.expected_revision
    done: ExemptionSet = await door.act(
        made,
        lambda c: end_exemption(
            c, project, identity, expected_revision=revision, reason=asked.reason, action=made.action
        ),
    )
    return ExemptionSetShape.model_validate(done)


@routes.post(
    "/findings/{finding_id}/delete",
    Right.FORGET,
    **told(
        "delete_finding",
        "Delete a finding",
        shows={
            "finding_id": dossiers.FINDING_ID,
            "analysis_id": dossiers.ANALYSIS_ID,
            "verdict": "passed",
            "revision": 8,
        },
        asks=DeletingFinding,
        asks_so={"reason": "it names somebody", "expected_revision": 1},
        refuses=(NotFound, RevisionMismatch, StateConflict, *AGAIN),
    ),
)
async def post_delete(
    finding_id: FindingPath,
    asked: Annotated[DeletingFinding, Depends(body(DeletingFinding))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> DeletedShape:
    """Remove a finding and what was decided about it. What its project knows of its fingerprint stays."""
    objects, reason = [f"finding:{finding_id}"], _said(asked.reason)
    made = order(request, who, Right.FORGET, "findings.delete", objects, reason, action_id=key)
    revision = asked.expected_revision
    done = await door.act(
        made,
        lambda c: delete_finding(
            c, FindingId(finding_id), expected_revision=revision, reason=reason, action=made.action
        ),
    )
    return DeletedShape.model_validate(done)


def _identity(found: FindingDetail) -> tuple[str, Identity]:
    """The project of a finding, and who it is there over all analyses."""
    return found.project, Identity(found.view.finding.analyser, found.view.finding.fingerprint)


def _said(reason: str) -> str:
    if not reason.strip():
        raise Invalid("Say why.", field="reason", remedy="The audit keeps it.")
    return reason
