"""Queues, kinds, workers, operations, receipts, statistics and the audit over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from testigo.access.roles import Role
from testigo.operations import advance
from testigo.rules.outcomes import Fail
from testigo.statistics import roll_up
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import Site


@pytest.mark.parametrize("scope", ["queue", "kind"])
def test_a_queue_or_kind_is_paused_and_resumed(site: Site, scope: str) -> None:
    """With a note, once; whoever looks sees who did it, and the audit too. A name may have a slash (spec P-14)."""
    operator = site.program(Role.OPERATOR)
    submitted(operator, **{scope: "a/b"})
    path = f"/api/v1/{scope}s/a/b"
    assert operator.get(path).json()["pause"] is None
    first = operator.post(f"{path}/pause", json={"reason": "the disk is full"}).json()
    assert first == {"scope": scope, "name": "a/b", "paused": True, "changed": True}
    assert operator.post(f"{path}/pause").json()["changed"] is False
    pause = operator.get(path).json()["pause"]
    assert pause["note"] == "the disk is full"
    assert pause["actor"].startswith("token:program-")
    assert site.world.worker(queues=["a/b", "q"], kinds=["a/b", "work"]).claim().leases == ()
    assert operator.post(f"{path}/resume").json() == first | {"paused": False}
    listed = operator.get(f"/api/v1/{scope}s").json()["items"]
    assert [each["pause"] for each in listed if each["name"] == "a/b"] == [None]
    told = operator.get("/api/v1/audit", params={"object": f"{scope}:a/b"}).json()["items"]
    assert [row["what"] for row in told] == [f"{scope}s.resume", f"{scope}s.pause", f"{scope}s.pause"]
    is_problem(operator.get(f"/api/v1/{scope}s/nothing"), 404, "NOT_FOUND")
    for wrong in ("%00", "%20x", "a" * 201):
        is_problem(operator.post(f"/api/v1/{scope}s/{wrong}/pause"), 422)


def test_queues_are_listed_page_by_page(site: Site) -> None:
    """By name, with what is in them; counts tell whether they stopped."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    for name in ("a", "b", "c"):
        submitted(operator, queue=name)
    first = viewer.get("/api/v1/queues", params={"limit": 2}).json()
    assert [(each["name"], each["ready"]) for each in first["items"]] == [
        ("a", {"n": 1, "more": False}),
        ("b", {"n": 1, "more": False}),
    ]
    second = viewer.get(first["next"]).json()
    assert ([each["name"] for each in second["items"]], second["next"]) == (["c"], None)


def test_a_worker_is_drained(site: Site) -> None:
    """It claims nothing more and settles what it has; sent again it is the same (spec P-17)."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    worker = site.world.worker("media-1")
    worker.take()
    (listed,) = operator.get("/api/v1/workers", params={"state": "open"}).json()["items"]
    assert (listed["id"], listed["agent"], listed["leases"]["n"]) == (worker.id, "media-1", 1)
    held = operator.get(f"/api/v1/workers/{worker.id}/jobs").json()["items"]
    assert [each["id"] for each in held] == [job_id]
    for _ in range(2):
        answer = operator.post(f"/api/v1/workers/{worker.id}/drain", json={"reason": "reboot"})
        assert answer.json() == {"session": worker.id, "agent": "media-1", "leases": {"n": 1, "more": False}}
    assert operator.get(f"/api/v1/workers/{worker.id}").json()["state"] == "draining"
    nobody = "0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e"
    for answer in (operator.get(f"/api/v1/workers/{nobody}"), operator.post(f"/api/v1/workers/{nobody}/drain")):
        is_problem(answer, 404, "NOT_FOUND")


def begun(client: httpx.Client, key: str, **body: Any) -> httpx.Response:
    """The answer to the beginning of an operation."""
    return client.post("/api/v1/operations", json=body, headers={"Idempotency-Key": key})


def test_an_operation_is_previewed_begun_followed_and_told_job_by_job(site: Site) -> None:
    """Over a frozen selection; sent again it is the same operation (panel.md, *Access, actions, audit*)."""
    operator = site.program(Role.OPERATOR)
    jobs = [submitted(operator, tags=["old"], payload={"n": 1}) for _ in range(3)]
    wanted = {"tag": "old", "payload_path": ["n"], "payload_value": "1"}
    later = {"verb": "cancel", "selection": {"filter": wanted}}
    seen = operator.post("/api/v1/operations/preview", json=later).json()
    assert (seen["count"], [each["id"] for each in seen["sample"]]) == ({"n": 3, "more": False}, jobs[::-1])
    first = begun(operator, "k", **later, reason="obsolete")
    assert first.status_code == 201
    again = begun(operator, "k", **later, reason="obsolete")
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    is_problem(begun(operator, "k", **later, reason="another"), 409, "ACTION_ID_COLLISION")
    submitted(operator, tags=["old"], payload={"n": 1})
    path = first.headers["location"]
    while site.db.run(advance, limit=2) is not None:
        pass
    told = operator.get(path).json()
    assert (told["state"], told["total"], told["done"], told["reason"]) == ("done", 3, 3, "obsolete")
    assert {name: told["filter"][name] for name in wanted} == wanted
    seen_by_viewer = site.program(Role.VIEWER).get(path).json()["filter"]
    assert (seen_by_viewer["tag"], seen_by_viewer["payload_value"]) == ("old", None)
    items = operator.get(f"{path}/items", params={"limit": 2}).json()
    rest = operator.get(items["next"]).json()
    shown = [(each["job"], each["outcome"], each["state"]) for each in items["items"] + rest["items"]]
    assert sorted(shown) == [(job_id, "done", "cancelled") for job_id in jobs]
    assert operator.get("/api/v1/operations").json()["items"] == [told]
    assert operator.post(f"{path}/cancel").json() == {"operation": told["id"], "stopped": False}


def test_an_operation_that_cannot_be_is_refused(site: Site) -> None:
    """Without a reason, a key or a selection; for everything there is; with what no filter knows."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    good: dict[str, Any] = {"verb": "cancel", "selection": {"ids": [job_id]}, "reason": "why"}
    bad: list[dict[str, Any]] = [
        {**good, "reason": ""},
        {**good, "reason": " "},
        {**good, "verb": "other"},
        {**good, "selection": {}},
        {**good, "selection": {"filter": {}}},
        {**good, "selection": {"ids": [job_id], "filter": {"tag": "a"}}},
        {**good, "selection": {"ids": ["x"]}},
        {**good, "selection": {"ids": [job_id, job_id]}},
        {**good, "selection": {"filter": {"other": 1}}},
        {**good, "selection": {"filter": {"payload_path": ["a"]}}},
    ]
    for body in bad:
        is_problem(begun(operator, "k", **body), 422)
    is_problem(operator.post("/api/v1/operations", json=good), 422)
    assert operator.get("/api/v1/operations").json()["items"] == []


def test_failures_are_grouped_by_cause_and_counted_by_state(site: Site) -> None:
    """And a cause finds its jobs."""
    operator = site.program(Role.OPERATOR)
    jobs = [submitted(operator) for _ in range(2)]
    worker = site.world.worker()
    for _ in jobs:
        worker.settle((worker.take(), Fail("HTTPError", "502", permanent=True)))
    told = operator.get("/api/v1/causes").json()
    (cause,) = told["causes"]
    assert (cause["code"], cause["open"], told["open"]["n"]) == ("HTTPError", 2, 2)
    found = operator.get("/api/v1/jobs", params={"cause": cause["id"]}).json()["items"]
    assert {each["id"] for each in found} == set(jobs)
    states = operator.get("/api/v1/states").json()["states"]
    assert states["permanent_failure"] == {"n": 2, "more": False}


def test_a_lost_answer_is_found_by_its_receipt(site: Site) -> None:
    """By the key of the request; a receipt of nobody is not found (spec B-04)."""
    operator = site.program(Role.OPERATOR)
    answer = operator.post("/api/v1/jobs", json={"kind": "work"}, headers={"Idempotency-Key": "k1"})
    receipt = operator.get("/api/v1/receipts/k1").json()
    assert receipt["answer"]["jobs"] == [answer.json()["job"]]
    is_problem(operator.get("/api/v1/receipts/k2"), 404, "NOT_FOUND")
    is_problem(operator.get("/api/v1/receipts/k1", params={"actor": "user:ana"}), 404, "NOT_FOUND")


def test_statistics_tell_what_was_counted(site: Site) -> None:
    """60 points of each measure and span, and totals by queue and kind."""
    operator = site.program(Role.OPERATOR)
    submitted(operator)
    while site.db.run(roll_up).more:
        pass
    told = operator.get("/api/v1/statistics/requested", params={"span": "24h"}).json()
    assert (len(told["points"]), told["total"]) == (60, 1)
    for by in ("queue", "kind"):
        (totals,) = operator.get("/api/v1/statistics", params={"by": by}).json()["items"]
        assert (totals["name"], totals["requested"]) == ({"queue": "q", "kind": "work"}[by], 1)
    for path in ("/api/v1/statistics/other", "/api/v1/statistics/wait?span=1y"):
        is_problem(operator.get(path), 422)


def test_who_asks_is_told_what_they_may(site: Site) -> None:
    """The name in the audit, the role and its rights."""
    told = site.as_(Role.VIEWER).get("/api/v1/who").json()
    assert told == {"name": "viewer", "actor": "user:viewer", "role": "viewer", "via": "login", "rights": ["read"]}
