"""Jobs listed and looked at over HTTP: whole pages, exact documents, and no words for who may not see them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest

from testigo.access.roles import Role
from testigo.authority.save import save
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Fail, Succeed
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import PATIENT, Site, served
from tests.world import World, held

SECRET = "marker-7f3a9c"
"""What no viewer may find."""


def pages(client: httpx.Client, path: str, **asked: Any) -> list[list[str]]:
    """The ids of each page of a listing, by the addresses that the pages name."""
    found = []
    following: str | None = str(httpx.URL(path, params=asked))
    while following is not None:
        page = client.get(following).json()
        found.append([each["id"] for each in page["items"]])
        following = page["next"]
    return found


def test_jobs_are_listed_page_by_page(site: Site) -> None:
    """From the newest, each once, with what was asked for; a cursor of another listing is refused."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    ids = [submitted(operator, tags=["odd" if n % 2 else "even"]) for n in range(7)]
    assert pages(viewer, "/api/v1/jobs", limit=3) == [ids[:3:-1], ids[3:0:-1], ids[:1]]
    assert pages(viewer, "/api/v1/jobs", limit=2, tag="odd") == [[ids[5], ids[3]], [ids[1]]]
    states = {"state": ["ready", "running"], "queue": "q", "kind": "work"}
    assert len(viewer.get("/api/v1/jobs", params=states).json()["items"]) == 7
    following = viewer.get("/api/v1/jobs", params={"limit": 3}).json()["next"]
    is_problem(viewer.get(following, params={**httpx.URL(following).params, "tag": "odd"}), 422, "CURSOR_INVALID")


def test_addresses_lead_back_through_the_proxy(database_url: str, world: World) -> None:
    """Whether it takes its prefix away or not, what is answered has it (field case R74)."""
    with served(database_url, world, replace(PATIENT, public_url="https://ops.example.org/work")) as site:
        operator = site.program(Role.OPERATOR)
        for prefix in ("", "/work"):
            headers = {"Idempotency-Key": f"k{prefix}"}
            made = operator.post(f"{prefix}/api/v1/jobs", json={"kind": "work"}, headers=headers)
            assert made.headers["location"] == f"/work/api/v1/jobs/{made.json()['job']}"
        for prefix in ("", "/work"):
            page = operator.get(f"{prefix}/api/v1/jobs", params={"limit": 1, "kind": "work"}).json()
            assert page["next"].startswith("/work/api/v1/jobs?")
            assert len(operator.get(page["next"]).json()["items"]) == 1


def test_what_no_listing_can_be_asked_for_is_refused(site: Site) -> None:
    """Unknown filters, hostile text, cursors of a megabyte: refused by field, and never an error of ours."""
    admin = site.program(Role.ADMIN)
    bad = {
        "sort": "x",
        "limit": "0",
        "after": "A" * 20_000,
        "queue": "a\x00b",
        "kind": "\u2028",
        "state": "x",
        "id_prefix": "zz",
        "cause": "x",
        "created_after": "yesterday",
        "failures_min": "18446744073709551616",
        "payload_path": "a",
        "payload_value": "a",
        "tag": "a" * 201,
    }
    for name, value in bad.items():
        answer = admin.get("/api/v1/jobs", params={name: value})
        assert answer.status_code in (414, 422, 431), (name, answer.text)
    for raw in ("limit=" + "9" * 5000, "queue=%ED%A0%80", "queue=%00", "after=%ff", "state=ready&state=x"):
        assert admin.get(f"/api/v1/jobs?{raw}").status_code in (200, 422), raw


def test_who_may_not_see_payloads_may_not_ask_by_them(site: Site) -> None:
    """Whether a job is found would tell what its payload holds (field case R76)."""
    operator, viewer = site.program(Role.OPERATOR), site.program(Role.VIEWER)
    job_id = submitted(operator, payload={"order": {"id": 881}})
    by_payload = {"payload_path": ["order", "id"], "payload_value": "881"}
    assert [each["id"] for each in operator.get("/api/v1/jobs", params=by_payload).json()["items"]] == [job_id]
    is_problem(viewer.get("/api/v1/jobs", params=by_payload), 403, "FORBIDDEN")


def test_a_job_is_found_by_its_key(site: Site) -> None:
    """The newest that the key names."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator, key="order-17", client="shop")
    asked = {"client": "shop", "kind": "work", "key": "order-17"}
    found = operator.get("/api/v1/jobs/by-key", params=asked)
    assert (found.json()["id"], found.headers["etag"]) == (
        job_id,
        operator.get(f"/api/v1/jobs/{job_id}").headers["etag"],
    )
    is_problem(operator.get("/api/v1/jobs/by-key", params={**asked, "key": "order-18"}), 404, "NOT_FOUND")
    is_problem(operator.get("/api/v1/jobs/by-key", params={"client": "shop"}), 422)


def test_a_job_without_a_document_says_so(site: Site) -> None:
    """What it has not made is not found; what it has is exact."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator, payload=[2**64])
    for name in ("checkpoint", "output"):
        is_problem(operator.get(f"/api/v1/jobs/{job_id}/{name}"), 404, "NOT_FOUND")
    worker = site.world.worker()
    worker.settle((worker.take(), Succeed(encode({"n": 2**64, "z": -0.0}))))
    assert operator.get(f"/api/v1/jobs/{job_id}/output").text == '{"n":18446744073709551616,"z":-0.0}'
    assert operator.get(f"/api/v1/jobs/{job_id}/payload").text == "[18446744073709551616]"


def holding(site: Site, client: httpx.Client) -> list[str]:
    """Jobs in whatever state words and documents occur, each with the marker wherever it can be."""
    told = {"payload": {"password": SECRET}}
    queues = ("failing", "blocking", "retrying", "running", "ending")
    jobs = {queue: submitted(client, queue=queue, **told) for queue in queues}
    workers = {queue: site.world.worker(queues=[queue]) for queue in queues}
    leases = {queue: worker.take() for queue, worker in workers.items()}
    workers["failing"].settle((leases["failing"], Fail("E", SECRET, detail=SECRET, permanent=True)))
    workers["retrying"].settle((leases["retrying"], Fail("E", SECRET, detail=SECRET)))
    workers["blocking"].settle((leases["blocking"], Block(SECRET, SECRET, encode(SECRET))))
    workers["ending"].settle((leases["ending"], Succeed(encode({"token": SECRET}))))
    workers["ending"].settle_slowly((leases["ending"], Succeed(encode({"late": SECRET}))))
    run = held(leases["running"])
    site.db.run(save, run, encode(SECRET), action=workers["running"].action(), number=1)
    return list(jobs.values())


def test_a_viewer_finds_no_word_of_what_jobs_hold(site: Site) -> None:
    """Every reading of every job: not one has the marker; an operator finds it (field case R76)."""
    operator, viewer = site.program(Role.OPERATOR), site.program(Role.VIEWER)
    jobs = holding(site, operator)
    beside = ("", "/explain", "/events", "/runs", "/late-results?documents=true", "/tombstones", "/lineage")
    held_in = ("/payload", "/checkpoint", "/output", "/log")
    paths = [f"/api/v1/jobs/{job_id}{part}" for job_id in jobs for part in beside]
    streams = [each["name"] for each in viewer.get("/api/v1/streams").json()["items"]]
    paths += [f"/api/v1/events?stream={name}" for name in streams]
    paths += [f"/api/v1/{name}" for name in ("jobs", "causes", "states", "queues", "kinds", "workers", "who")]
    told = {path: viewer.get(path) for path in paths}
    assert {path: answer.status_code for path, answer in told.items() if answer.status_code != 200} == {}
    assert [path for path, answer in told.items() if SECRET in answer.text] == []
    for job_id in jobs:
        assert viewer.get(f"/api/v1/jobs/{job_id}").json()["redacted"] is True
        for part in held_in:
            answer = viewer.get(f"/api/v1/jobs/{job_id}{part}")
            is_problem(answer, 403, "FORBIDDEN")
    seen = [path for path in paths if SECRET in operator.get(path).text]
    assert {part for part in beside if any(path.endswith(part) for path in seen if part)} >= {
        "/explain",
        "/events",
        "/runs",
        "/late-results?documents=true",
    }


def test_neither_problems_nor_logs_nor_the_audit_tell_a_secret(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """What is refused is told by field and rule, not by what was sent; nor is what was accepted (field case R76)."""
    caplog.set_level(logging.DEBUG)
    operator = site.program(Role.OPERATOR)
    token = operator.headers["authorization"].removeprefix("Bearer ")
    bodies = (
        {"kind": "work", "payload": SECRET, "priority": SECRET},
        {"kind": "work", "payload": SECRET, "tags": [{"a": SECRET}]},
        {"kind": "work", "queue": f"{SECRET}\x00"},
        {"kind": "work", "parents": [SECRET]},
    )
    for body in bodies:
        answer = operator.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "k"})
        assert is_problem(answer, 422)
        assert SECRET not in answer.text
        assert token not in answer.text
    submitted(operator, payload={"password": SECRET})
    (done, *_) = operator.get("/api/v1/audit").json()["items"]
    assert done["what"] == "jobs.submit"
    written = caplog.text + operator.get("/api/v1/audit").text
    assert SECRET not in written
    assert token not in written
