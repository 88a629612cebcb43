"""Every operation does what it is for: an administrator who asks as the document says is answered with success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from schemathesis.core.result import Ok

from testigo.access.roles import Role
from testigo.authority.actions import JobId
from testigo.rules.states import State
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes
from tests.web.api.inhabited import Inhabited, inhabited
from tests.web.api.test_generated import CHECKS, ENDLESS
from tests.world import World

KEY = "order-17"

ELSEWHERE = {*ENDLESS, "reprocess_analysis"}
"""What has tests of its own: a stream, and what only an analysis that a real scan began can be asked."""


@dataclass(frozen=True)
class Fit:
    """What a fit request says beside what is said here of all of them and in the document's own example."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


def fit_requests(there: Inhabited, client: str) -> dict[str, Fit]:
    """What the operations are asked that cannot be asked about just anything, in the order of the document."""
    jobs, failed = there.made.jobs, there.made.failed
    why = {"reason": "a test"}
    decided, exempt, deleted = there.findings

    def seen(job: JobId) -> dict[str, Any]:
        return {"expected_revision": there.site.world.job(job).revision, **why}

    until = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    return {
        "find_job": Fit(query={"client": client, "kind": "media.transcode", "key": KEY}),
        "get_checkpoint": Fit({"job_id": jobs[State.CHECKPOINTED]}),
        "get_output": Fit({"job_id": jobs[State.SUCCEEDED]}),
        "cancel_job": Fit({"job_id": jobs[State.READY]}, body=seen(jobs[State.READY])),
        "retry_job": Fit({"job_id": failed[1]}, body=seen(failed[1])),
        "unblock_job": Fit({"job_id": jobs[State.BLOCKED_BY_QUALITY]}, body=seen(jobs[State.BLOCKED_BY_QUALITY])),
        "forget_job": Fit({"job_id": failed[2]}, body=seen(failed[2])),
        "list_events": Fit(query={"stream": "payments"}),
        "set_gate": Fit(body={"policy": {"thresholds": {"high": 0}}, "expected_revision": 0, **why}),
        "cancel_analysis": Fit({"analysis_id": there.begun}),
        "decide_findings": Fit(body={"findings": {decided: 1}, "decision": "false_positive", **why}),
        "exempt_finding": Fit({"finding_id": exempt}, body={"expected_revision": 0, "expires_at": until, **why}),
        "end_exemption": Fit({"finding_id": exempt}),
        "delete_finding": Fit({"finding_id": deleted}),
    }


def test_every_operation_is_answered_with_success(database_url: str, world: World, tmp_path: Path) -> None:
    """And as the document tells of it: one that never succeeds is an operation that nobody has tried."""
    with inhabited(database_url, world, tmp_path) as there:
        program = there.site.program(Role.ADMIN)
        fit = fit_requests(there, program.get("/api/v1/who").json()["actor"])
        answers: dict[str, str] = {}
        for result in schemathesis.openapi.from_dict(document(routes.router)).get_all_operations():
            assert isinstance(result, Ok)
            operation: Any = result.ok()
            name = operation.definition.raw["operationId"]
            if name not in ELSEWHERE:
                answer = asked(operation, fit.get(name, Fit()), there, program)
                answers[name] = "" if answer.status_code < 300 else f"{answer.status_code}: {answer.text}"
    assert {name: told for name, told in answers.items() if told} == {}
    assert set(fit) <= set(answers)


def asked(operation: Any, fit: Fit, there: Inhabited, program: httpx.Client) -> Any:
    """The answer to a fit request, which is one that the document tells of."""
    taken = [parameter.name for parameter in operation.path_parameters]
    nouns = {"queues": "payments", "kinds": "shop.charge", "projects": "shop"}
    names = {"name": nouns.get(operation.path.split("/")[3], "")}
    known = names | {"action": KEY, "measure": "requested"} | {name: ids[0] for name, ids in there.named.items()}
    key = KEY if operation.path == "/api/v1/jobs" else f"{KEY}-{operation.label}"
    case = operation.Case(
        path_parameters={name: fit.path.get(name, known[name]) for name in taken},
        query=dict(fit.query),
        headers={"Authorization": program.headers["authorization"], "Idempotency-Key": key},
    )
    if (told := operation.definition.raw.get("requestBody")) is not None:
        case.body = dict(fit.body or told["content"]["application/json"]["example"])
        case.media_type = "application/json"
    answer = case.call(base_url=there.site.url)
    case.validate_response(answer, checks=CHECKS)
    return answer
