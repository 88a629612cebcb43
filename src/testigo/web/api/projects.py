"""Projects: whose source is analysed, what their gates let through, and the risks that they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from testigo.access.roles import Right
from testigo.errors import CursorInvalid, Invalid, NotFound, RevisionMismatch
from testigo.evidence.exemptions import exemptions
from testigo.evidence.gates import set_gate
from testigo.evidence.model import AnalysisId, AnalysisState, Exempted, ProjectView
from testigo.evidence.projects import project, projects
from testigo.rules.evidence.exemption import ExemptionState
from testigo.rules.evidence.gate import Policy, Verdict
from testigo.rules.evidence.severity import Severity
from testigo.settings import LIMITS
from testigo.web.api import dossiers, examples
from testigo.web.api.bodies import body
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.shapes import Flag, Id, Moment, PageShape, Shape, Whole
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["ExemptionShape", "PolicyShape", "SettingGate", "exemption_shape", "routes"]

routes = Routes("/projects", tags=["projects"])

Name = Annotated[str, Path(description="The project's name.", examples=["shop"])]
Limits = dict[Severity, Annotated[Whole, Field(ge=0)]]
Why = Annotated[str, Field(min_length=1, max_length=LIMITS.text_bytes_max)]


class PolicyShape(Shape):
    """What a gate lets through: at most so many findings of each severity; one without a number is not limited."""

    thresholds: Limits = Field(default_factory=dict)
    """Of all analysers together, but for those in `by_analyser`."""
    by_analyser: dict[str, Limits] = Field(default_factory=dict)
    """Analysers that are judged by limits of their own."""
    new_only: Flag = False
    """What the baseline has does not count."""
    honour_suppressions: Flag = False
    """What the source itself suppresses does not count."""


class ProjectShape(Shape):
    """A project. `policy_revision` 0 is the gate that nobody set; `latest` is the newest published analysis."""

    name: str
    created_at: Moment
    analyses: int
    policy: PolicyShape
    policy_revision: int
    policy_by: str | None
    policy_at: Moment | None
    policy_reason: str
    baseline: str | None
    latest: str | None
    latest_state: AnalysisState | None
    latest_verdict: Verdict | None


class ExemptionShape(Shape):
    """A risk that a project takes: a fingerprint of an analyser that its gate does not count."""

    project: str
    analyser: str
    fingerprint: str
    state: ExemptionState
    reason: str
    reviewer: str
    granted_at: Moment
    expires_at: Moment | None
    revision: int
    ended_at: Moment | None


class SettingGate(Shape):
    """The gate as it shall be, at the revision at which it was seen; 0 is that of a gate that nobody set."""

    policy: PolicyShape
    expected_revision: Annotated[Whole, Field(ge=0)]
    baseline: Id | None = None
    """The baseline of analyses that begin from now on; none without it."""
    reason: Why
    """Why, for people: the audit tells it."""


class GateSetShape(Shape):
    """The gate's revision now, and what it says of the newest published analysis, if there is one."""

    project: str
    revision: int
    analysis_id: str | None
    verdict: Verdict | None


@routes.get(
    "",
    Right.READ,
    **told("list_projects", "List projects", shows=examples.page(dossiers.PROJECT), refuses=(CursorInvalid,)),
)
async def list_projects(
    asked: Annotated[PageQuery, Query()], request: Request, door: AtDoor
) -> PageShape[ProjectShape]:
    """List projects in the order of their names."""
    found = await door.read(projects, after=asked.cursor, limit=asked.limit)
    return PageShape(items=tuple(map(_shape, found.items)), next=next_address(request, found.next))


@routes.get(
    "/{name:path}/exemptions",
    Right.READ,
    **told(
        "list_exemptions",
        "List the exemptions of a project",
        shows=examples.page(dossiers.EXEMPTION),
        refuses=(CursorInvalid,),
    ),
)
async def list_exemptions(
    name: Name, asked: Annotated[PageQuery, Query()], request: Request, door: AtDoor
) -> PageShape[ExemptionShape]:
    """List the risks that a project takes or took, in the order of analysers and fingerprints."""
    found = await door.read(exemptions, name, after=asked.cursor, limit=asked.limit)
    return PageShape(items=tuple(map(exemption_shape, found.items)), next=next_address(request, found.next))


@routes.get(
    "/{name:path}",
    Right.READ,
    **told("get_project", "Show a project", shows=dossiers.PROJECT, refuses=(NotFound,)),
)
async def get_project(name: Name, door: AtDoor) -> ProjectShape:
    """Show a project with its gate, and how its newest evidence stands."""
    return _shape(await door.read(project, name))


@routes.put(
    "/{name:path}/gate",
    Right.REVIEW,
    **told(
        "set_gate",
        "Set a project's gate",
        shows={"project": "shop", "revision": 2, "analysis_id": dossiers.ANALYSIS_ID, "verdict": "passed"},
        asks=SettingGate,
        asks_so={"policy": dossiers.POLICY, "expected_revision": 1, "reason": "no high ones from now on"},
        refuses=(NotFound, RevisionMismatch, *AGAIN),
    ),
)
async def put_gate(
    name: Name,
    asked: Annotated[SettingGate, Depends(body(SettingGate))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> GateSetShape:
    """Set what a project lets through, and judge its newest published analysis by it. A new project is made."""
    policy = Policy.from_json(asked.policy.model_dump(mode="json"))
    _said(asked.reason)
    made = order(request, who, Right.REVIEW, "gates.set", [f"project:{name}"], asked.reason, action_id=key)
    done = await door.act(
        made,
        lambda c: set_gate(
            c,
            name,
            policy,
            expected_revision=asked.expected_revision,
            baseline=None if asked.baseline is None else AnalysisId(asked.baseline),
            reason=asked.reason,
            action=made.action,
        ),
    )
    return GateSetShape.model_validate(done)


def _shape(view: ProjectView) -> ProjectShape:
    members: Mapping[str, Any] = {name: getattr(view, name) for name in ProjectShape.model_fields if name != "policy"}
    return ProjectShape(policy=PolicyShape.model_validate(view.policy), **members)


def exemption_shape(view: Exempted) -> ExemptionShape:
    """An exemption as the API tells it."""
    members = {name: getattr(view, name) for name in ExemptionShape.model_fields if hasattr(view, name)}
    return ExemptionShape(analyser=view.identity.analyser, fingerprint=view.identity.fingerprint, **members)


def _said(reason: str) -> None:
    if not reason.strip():
        raise Invalid("Say why.", field="reason", remedy="The audit keeps it.")
