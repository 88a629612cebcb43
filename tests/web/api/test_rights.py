"""Each route and each role, asked directly: what a role has no right to is refused and does nothing."""

from __future__ import annotations

import json
from typing import Any

import httpx

from testigo.access.roles import RIGHTS, Right, Role
from testigo.authority.actions import new_id
from testigo.web.api.examples import JOB_ID
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import Site

NEEDS: dict[str, Right] = {
    "get_ready": Right.READ,
    "get_metrics": Right.READ,
    "get_who": Right.READ,
    "count_states": Right.READ,
    "list_causes": Right.READ,
    "list_jobs": Right.READ,
    "find_job": Right.READ,
    "get_job": Right.READ,
    "explain_job": Right.READ,
    "list_job_events": Right.READ,
    "list_runs": Right.READ,
    "list_late_results": Right.READ,
    "list_tombstones": Right.READ,
    "get_lineage": Right.READ,
    "read_log": Right.DOCUMENTS,
    "get_payload": Right.DOCUMENTS,
    "get_checkpoint": Right.DOCUMENTS,
    "get_output": Right.DOCUMENTS,
    "submit_job": Right.SUBMIT,
    "submit_jobs": Right.SUBMIT,
    "cancel_job": Right.CANCEL,
    "retry_job": Right.RETRY,
    "unblock_job": Right.UNBLOCK,
    "forget_job": Right.FORGET,
    "preview_operation": Right.RETRY,
    "begin_operation": Right.RETRY,
    "list_operations": Right.READ,
    "get_operation": Right.READ,
    "list_operation_items": Right.READ,
    "cancel_operation": Right.READ,
    "list_queues": Right.READ,
    "get_queue": Right.READ,
    "pause_queue": Right.PAUSE,
    "resume_queue": Right.PAUSE,
    "list_kinds": Right.READ,
    "get_kind": Right.READ,
    "pause_kind": Right.PAUSE,
    "resume_kind": Right.PAUSE,
    "list_workers": Right.READ,
    "get_worker": Right.READ,
    "list_held_jobs": Right.READ,
    "drain_worker": Right.DRAIN,
    "list_streams": Right.READ,
    "list_events": Right.READ,
    "follow_events": Right.READ,
    "get_receipt": Right.READ,
    "list_totals": Right.READ,
    "get_series": Right.READ,
    "list_projects": Right.READ,
    "get_project": Right.READ,
    "set_gate": Right.REVIEW,
    "list_exemptions": Right.READ,
    "list_analyses": Right.READ,
    "get_analysis": Right.READ,
    "cancel_analysis": Right.CANCEL,
    "reprocess_analysis": Right.RETRY,
    "list_findings": Right.READ,
    "decide_findings": Right.REVIEW,
    "get_finding": Right.READ,
    "advise_finding": Right.REVIEW,
    "exempt_finding": Right.REVIEW,
    "end_exemption": Right.REVIEW,
    "delete_finding": Right.FORGET,
    "list_artifacts": Right.READ,
    "get_artifact": Right.READ,
    "get_artifact_content": Right.DOCUMENTS,
    "get_artifact_attestation": Right.DOCUMENTS,
    "list_audit": Right.AUDIT,
}
"""What each route needs; `begin_operation` is asked to retry here, and its other verbs have a test of their own."""

VERBS = {"cancel": Right.CANCEL, "retry": Right.RETRY, "unblock": Right.UNBLOCK, "forget": Right.FORGET}


def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation that is not open to everybody, by its id."""
    return {
        told["operationId"]: (method, path, told)
        for path, methods in document(routes.router)["paths"].items()
        for method, told in methods.items()
        if told.get("security") != []
    }


def asked(client: httpx.Client, method: str, path: str, told: dict[str, Any]) -> httpx.Response:
    """What the operation answers to a request that is as in its examples, about things that are not there."""
    for parameter in told.get("parameters", ()):
        if parameter["in"] == "path":
            first = parameter["schema"].get("examples", parameter["schema"].get("enum", [JOB_ID]))
            path = path.replace(f"{{{parameter['name']}}}", parameter.get("examples", first)[0])
    query = {
        parameter["name"]: "nothing"
        for parameter in told.get("parameters", ())
        if parameter["in"] == "query" and parameter["required"]
    }
    body = told["requestBody"]["content"]["application/json"]["example"] if "requestBody" in told else None
    headers = {"Idempotency-Key": new_id()} if body is not None else {}
    content = None if body is None else json.dumps(body)
    headers |= {"Content-Type": "application/json"} if content else {}
    return client.request(method, path.replace("{measure}", "run"), params=query, content=content, headers=headers)


def test_the_table_names_each_route() -> None:
    """A route that is not in it is one whose right nobody decided on."""
    assert set(operations()) == set(NEEDS)


def test_a_role_may_what_the_table_says_and_nothing_else(site: Site) -> None:
    """Every route with a token of every role; what is refused names the right, and leaves nothing (field case R75)."""
    wrong = {}
    for role in Role:
        program = site.program(role)
        for name, (method, path, told) in operations().items():
            answer = asked(program, method, path, told)
            expected = 403 if NEEDS[name] not in RIGHTS[role] else None
            if (answer.status_code == 403) != (expected == 403) or answer.status_code in (401, 429, 500, 503):
                wrong[role, name] = (answer.status_code, answer.text[:200])
            elif expected:
                assert is_problem(answer, 403, "FORBIDDEN")["facts"]["right"] == NEEDS[name]
    assert wrong == {}


def test_a_login_of_a_role_may_as_much_as_its_token(site: Site) -> None:
    """With a cookie, the page's own origin and its token; without the latter two nothing is changed."""
    operator, viewer = site.as_(Role.OPERATOR), site.as_(Role.VIEWER)
    job_id = submitted(operator)
    is_problem(viewer.post(f"/api/v1/jobs/{job_id}/cancel", json={}), 403, "FORBIDDEN")
    cookie = dict(operator.cookies)
    forged = site.client({"Origin": "https://elsewhere.example"}, cookie)
    is_problem(forged.post(f"/api/v1/jobs/{job_id}/cancel", headers={"If-Match": "*"}), 403, "FORBIDDEN")
    assert site.world.state(job_id) == "ready"
    assert operator.post(f"/api/v1/jobs/{job_id}/cancel", headers={"If-Match": "*"}).status_code == 200
    assert site.world.state(job_id) == "cancelled"


def test_an_operation_needs_the_right_of_its_verb(site: Site) -> None:
    """Each verb with each role, previewed, begun and stopped."""
    admin = site.program(Role.ADMIN)
    job_id = submitted(admin)
    begun = {}
    for verb, right in VERBS.items():
        for role in Role:
            may = right in RIGHTS[role]
            program = site.program(role)
            body = {"verb": verb, "selection": {"ids": [job_id]}}
            assert (program.post("/api/v1/operations/preview", json=body).status_code == 200) == may, (verb, role)
            headers = {"Idempotency-Key": f"{verb}-{role}"}
            answer = program.post("/api/v1/operations", json={**body, "reason": "why"}, headers=headers)
            assert (answer.status_code == 201) == may, (verb, role, answer.text)
            if may:
                begun[verb] = answer.json()["id"]
    for verb, operation_id in begun.items():
        for role in Role:
            answer = site.program(role).post(f"/api/v1/operations/{operation_id}/cancel", json={})
            assert (answer.status_code == 200) == (VERBS[verb] in RIGHTS[role]), (verb, role, answer.text)


def test_nothing_is_told_to_whoever_is_not_known(site: Site) -> None:
    """Without a token, with one that is none, and with one that was cut (field case R75)."""
    token = site.program(Role.ADMIN).headers["authorization"]
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": token[:-1]}, {"Authorization": "Basic eDp4"}):
        client = site.client(headers)
        for method, path, told in operations().values():
            is_problem(asked(client, method, path, told), 401, "UNAUTHENTICATED")


def test_no_get_changes_anything(site: Site) -> None:
    """What is asked for by POST is not done by GET, HEAD, PUT or DELETE (field case R74)."""
    admin = site.program(Role.ADMIN)
    job_id = submitted(admin)
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
        answer = admin.request(method, f"/api/v1/jobs/{job_id}/cancel", headers={"If-Match": "*"})
        assert answer.status_code == 405, method
    assert site.world.state(job_id) == "ready"


def test_whoever_is_denied_an_operation_is_written_down(site: Site) -> None:
    """That its request says which right it needs hides nobody: to begin one, and to stop one."""
    admin, viewer = site.program(Role.ADMIN), site.program(Role.VIEWER)
    body = {"verb": "cancel", "selection": {"ids": [submitted(admin)]}, "reason": "why"}
    begun = admin.post("/api/v1/operations", json=body, headers={"Idempotency-Key": new_id()}).json()["id"]
    for path in ("", f"/{begun}/cancel"):
        answer = viewer.post(
            f"/api/v1/operations{path}", json=body if not path else {}, headers={"Idempotency-Key": new_id()}
        )
        is_problem(answer, 403, "FORBIDDEN")
    rows = site.world.query("SELECT what, code FROM testigo.audit WHERE result = 'denied' ORDER BY n")
    whats = ["POST /api/v1/operations", f"POST /api/v1/operations/{begun}/cancel"]
    assert [(row.what, row.code) for row in rows] == [(what, "FORBIDDEN") for what in whats]
