"""Jobs submitted over HTTP: once, however often the request is sent, and with their payloads as they were sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Barrier

import httpx
import pytest
from fastapi import Request
from pydantic import field_validator
from starlette.types import Message

from testigo.access.roles import Role
from testigo.access.tokens import NewToken, create_token
from testigo.authority.actions import JobId
from testigo.authority.read import job
from testigo.authority.submissions import NewJob
from testigo.web.api import bodies
from testigo.web.api.shapes import Shape
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import Site

BAD: tuple[tuple[str | bytes, str], ...] = (
    ('{"kind": "work", "payload": {"a": 1, "a": 2}}', "payload"),
    ('{"kind": "work", "payload": NaN}', "payload"),
    ('{"kind": "work", "payload": "\\u0000"}', "payload"),
    ('{"kind": "work", "payload": "\\ud800"}', "payload"),
    ('{"kind": "work", "payload": 1e999}', "payload"),
    ('{"kind": "work", "payload": ' + "[" * 100 + "]" * 100 + "}", "payload"),
    ('{"kind": "work", "payload": ' + "[" * 100_000 + "]" * 100_000 + "}", "payload"),
    ('{"kind": "work", "kind": "b"}', "body"),
    ('{"kind": "work"} x', "body"),
    ('{"kind": "work",}', "body"),
    ('["work"]', "body"),
    ("", "body"),
    ("nothing", "body"),
    ('{"kind": "work", "other": 1}', "other"),
    ('{"kind": "work", "\\ud800": 1}', "body"),
    ('{"kind": 7}', "kind"),
    ('{"kind": ""}', "kind"),
    ('{"kind": "a\\u0000b"}', "kind"),
    ('{"kind": "\\ud800"}', "kind"),
    ('{"queue": "q"}', "kind"),
    ('{"kind": "work", "queue": "q#1"}', "queue"),
    ('{"kind": "work", "priority": 18446744073709551616}', "priority"),
    ('{"kind": "work", "priority": "1"}', "priority"),
    ('{"kind": "work", "priority": ' + "9" * 5000 + "}", "priority"),
    ('{"kind": "work", "attempts": true}', "attempts"),
    ('{"kind": "work", "timeout_seconds": -1}', "timeout_seconds"),
    ('{"kind": "work", "timeout_seconds": NaN}', "timeout_seconds"),
    ('{"kind": "work", "run_at": "2026-11-30T12:00:00"}', "run_at"),
    ('{"kind": "work", "run_at": 1764504000}', "run_at"),
    ('{"kind": "work", "run_at": "0001-01-01T00:00:00+14:00"}', "run_at"),
    ('{"kind": "work", "parents": ["x"]}', "parents[0]"),
    ('{"kind": "work", "tags": ["a", 2]}', "tags[1]"),
    ('{"kind": "work", "tags": "a"}', "tags"),
    ('{"kind": "work", "policy": "other"}', "policy"),
    ('{"kind": "work", "backoff": {"type": "other"}}', "backoff"),
    ('{"kind": "work", "backoff": {"type": "constant", "seconds": -1}}', "backoff.seconds"),
    ('{"kind": "work", "trace": "x"}', "trace"),
    ("[" * 100_000, "body"),
    (b'{"kind": "\xff"}', "body"),
)
"""Bodies, and the field by which each is refused."""


def test_a_job_is_accepted_and_ready_at_once(site: Site) -> None:
    """The answer names the job, its address is in Location, and a stream has told of it (spec D-01, P-11)."""
    program = site.program(Role.OPERATOR)
    body = {"kind": "work", "queue": "q", "payload": {"n": 1}, "tags": ["a", "b"], "attempts": 5}
    answer = program.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})
    assert answer.status_code == 201
    job_id = answer.json()["job"]
    assert answer.json() == {"job": job_id, "how": "accepted"}
    assert answer.headers["location"] == f"/api/v1/jobs/{job_id}"
    shown = program.get(answer.headers["location"])
    assert shown.json()["state"] == "ready"
    assert shown.json()["key"] == "k1"
    assert shown.json()["client"].startswith("token:program-")
    assert shown.json()["tags"] == ["a", "b"]
    assert shown.headers["etag"] == f'"{shown.json()["revision"]}"'
    assert site.world.events(job_id) == ["job.requested"]


def test_the_same_request_again_is_the_same_job(site: Site) -> None:
    """However often it is sent, also by somebody who formats JSON in another way around the payload (spec B-04)."""
    program = site.program(Role.OPERATOR)
    key = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    first = program.post("/api/v1/jobs", content='{"kind":"work","payload":{"n": 1}}', headers=key)
    second = program.post("/api/v1/jobs", content='{ "payload":{"n": 1}, "kind": "work" }', headers=key)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"job": first.json()["job"], "how": "existing"}


def test_the_same_key_for_other_content_is_a_conflict(site: Site) -> None:
    """Nothing is submitted (spec D-01, B-04)."""
    program = site.program(Role.OPERATOR)
    key = {"Idempotency-Key": "k1"}
    assert program.post("/api/v1/jobs", json={"kind": "work"}, headers=key).status_code == 201
    for other in ({"kind": "work", "payload": 2}, {"kind": "other"}, {"kind": "work", "queue": "b"}):
        is_problem(program.post("/api/v1/jobs", json=other, headers=key), 409, "ACTION_ID_COLLISION")
    assert len(program.get("/api/v1/jobs").json()["items"]) == 1


def test_a_request_that_is_sent_many_times_at_once_is_one_job(site: Site) -> None:
    """Whoever is first accepts it, and everybody is told of that one (spec B-04)."""
    program = site.program(Role.OPERATOR)
    barrier = Barrier(6)

    def send() -> httpx.Response:
        barrier.wait()
        return program.post("/api/v1/jobs", json={"kind": "work"}, headers={"Idempotency-Key": "k1"})

    with ThreadPoolExecutor(6) as pool:
        answers = [each.result() for each in [pool.submit(send) for _ in range(6)]]
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.json()["job"] for answer in answers}) == 1
    assert len(program.get("/api/v1/jobs").json()["items"]) == 1


def test_a_request_is_known_for_longer_than_its_receipt(site: Site) -> None:
    """By the submission's key: weeks later it is still the same job, or a conflict (spec D-01, P-04)."""
    program = site.program(Role.OPERATOR)
    key = {"Idempotency-Key": "k1"}
    first = program.post("/api/v1/jobs", json={"kind": "work"}, headers=key)
    site.world.query("DELETE FROM testigo.receipt RETURNING 1")
    site.world.query("UPDATE testigo.installation SET receipt_floor = now() RETURNING 1")
    again = program.post("/api/v1/jobs", json={"kind": "work"}, headers=key)
    assert (again.status_code, again.json()) == (200, {"job": first.json()["job"], "how": "existing"})
    other = program.post("/api/v1/jobs", json={"kind": "work", "payload": 2}, headers=key)
    assert is_problem(other, 409)["code"] in ("ACTION_ID_COLLISION", "KEY_CONFLICT")
    assert len(program.get("/api/v1/jobs").json()["items"]) == 1


def test_two_programs_with_one_key_have_a_job_each(site: Site) -> None:
    """A key is its client's own (spec D-01)."""
    key = {"Idempotency-Key": "k1"}
    answers = [site.program(Role.OPERATOR).post("/api/v1/jobs", json={"kind": "work"}, headers=key) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["job"] for answer in answers}) == 2


@pytest.mark.parametrize("path", ["", "/batch"])
def test_a_token_a_user_and_an_application_of_one_name_are_three_clients(site: Site, path: str) -> None:
    """Each has a job of its own under one key."""
    token = NewToken.new()
    until, digest = datetime.now(UTC) + timedelta(days=1), token.secret.digest
    site.db.run(create_token, "operator", Role.OPERATOR, until, digest, id=token.id, action=site.world.action())
    program = site.client({"Authorization": f"Bearer {token.secret.text}"})
    site.world.submit(NewJob("work", client="operator", key="order-17"))
    body = {"kind": "work", "key": "order-17"}
    for sender in (program, site.as_(Role.OPERATOR)):
        asked = {"jobs": [body]} if path else body
        answer = sender.post(f"/api/v1/jobs{path}", json=asked, headers={"Idempotency-Key": "k1"})
        assert "accepted" in answer.text, answer.text
    clients = site.world.query("SELECT client FROM testigo.job ORDER BY client")
    assert [row.client for row in clients] == ["operator", "token:operator", "user:operator"]


def test_a_request_without_a_key_is_refused(site: Site) -> None:
    """It could not be sent again without doubt."""
    keyless = is_problem(site.program(Role.OPERATOR).post("/api/v1/jobs", json={"kind": "work"}), 422, "INVALID")
    assert (keyless["field"], keyless["detail"]) == ("Idempotency-Key", "It is needed, and missing.")


def test_a_payload_is_kept_as_it_was_sent(site: Site) -> None:
    """Every number and every space of it, there and back (spec P-06; field case R45)."""
    program = site.program(Role.OPERATOR)
    text = '{"big": 18446744073709551616, "e": 1e2,  "z": -0.0, "s": "\\u00e9", "long": ' + "9" * 5000 + "}"
    body = f'{{"kind": "work", "payload": {text}}}'
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    answer = program.post("/api/v1/jobs", content=body, headers=headers)
    assert answer.status_code == 201
    job_id = JobId(answer.json()["job"])
    documents = site.db.run(job, job_id, documents=True).documents
    assert documents is not None
    assert documents.payload == text
    read = program.get(f"/api/v1/jobs/{job_id}/payload")
    assert read.text == text
    assert read.headers["content-type"] == "application/json"


def test_what_cannot_be_is_refused_by_its_field(site: Site) -> None:
    """Whatever is sent, it is refused with a reason and nothing is submitted (field cases R45, R46)."""
    program = site.program(Role.OPERATOR)
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    wrong = {}
    for body, field in BAD:
        answer = program.post("/api/v1/jobs", content=body, headers=headers)
        if answer.status_code != 422 or not answer.json().get("field", "").startswith(field):
            wrong[body[:80]] = answer.text
    assert wrong == {}
    assert program.get("/api/v1/jobs").json()["items"] == []


def test_a_parent_that_does_not_exist_is_not_found(site: Site) -> None:
    """The field says which."""
    program = site.program(Role.OPERATOR)
    body = {"kind": "work", "parents": ["0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e"]}
    told = is_problem(program.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "k"}), 404, "NOT_FOUND")
    assert told["field"] == "parents"


def test_a_body_that_is_no_json_by_its_type_is_refused(site: Site) -> None:
    """A form of another site cannot say that it is JSON (field case R74)."""
    headers = {"Idempotency-Key": "k1", "Content-Type": "text/plain"}
    answer = site.program(Role.OPERATOR).post("/api/v1/jobs", content='{"kind": "work"}', headers=headers)
    assert is_problem(answer, 422)["field"] == "Content-Type"


def test_a_body_that_is_too_large_is_refused(site: Site) -> None:
    """Whether it says how large it is or not; the server goes on (10 MB)."""
    program = site.program(Role.OPERATOR)
    large = b'{"kind": "' + b"a" * 10_000_000 + b'"}'
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    for content in (large, (large[at : at + 65536] for at in range(0, len(large), 65536))):
        with suppress(httpx.NetworkError, httpx.RemoteProtocolError):  # it may be refused before it is all sent
            is_problem(program.post("/api/v1/jobs", content=content, headers=headers), 413, "PAYLOAD_TOO_LARGE")
    assert program.get("/api/v1/jobs").json()["items"] == []


def test_a_payload_that_is_too_large_is_refused_by_its_limit(site: Site) -> None:
    """256 KiB are kept inline (spec P-06)."""
    body = {"kind": "work", "payload": "a" * 300_000}
    answer = site.program(Role.OPERATOR).post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})
    told = is_problem(answer, 413, "PAYLOAD_TOO_LARGE")
    assert (told["field"], told["limit"]) == ("payload", "262144 bytes of UTF-8")


def test_a_batch_is_answered_row_by_row(site: Site) -> None:
    """What has a key that is taken is answered so, and the rest is accepted; sent again, nothing more is done."""
    program = site.program(Role.OPERATOR)
    first = submitted(program, kind="work", key="a")
    again = {"kind": "work", "queue": "q", "key": "a"}
    rows = [again, {**again, "payload": 2}, {"kind": "b"}, {"kind": "b"}]
    answers = [program.post("/api/v1/jobs/batch", json={"jobs": rows}, headers={"Idempotency-Key": "b"}) for _ in "ab"]
    assert [answer.status_code for answer in answers] == [200, 200]
    jobs = answers[0].json()["jobs"]
    assert [row["how"] for row in jobs] == ["existing", "conflict", "accepted", "accepted"]
    assert jobs[0]["job"] == jobs[1]["job"] == first
    assert [answer.json()["replayed"] for answer in answers] == [False, True]
    assert [row["job"] for row in answers[1].json()["jobs"]][2:] == [row["job"] for row in jobs][2:]
    assert len(program.get("/api/v1/jobs").json()["items"]) == 3
    assert {site.world.state(row["job"]) for row in jobs} == {"ready"}


def test_a_batch_has_bounds(site: Site) -> None:
    """None and too many are refused, and one bad row refuses all, by its place."""
    program = site.program(Role.OPERATOR)
    for rows in ([], [{"kind": "work"}] * 1001):
        answer = program.post("/api/v1/jobs/batch", json={"jobs": rows}, headers={"Idempotency-Key": "b"})
        assert is_problem(answer, 422)["field"] == "jobs"
    bad: list[dict[str, object]] = [{"kind": "work"}, {"kind": "work", "tags": [""]}]
    answer = program.post("/api/v1/jobs/batch", json={"jobs": bad}, headers={"Idempotency-Key": "b"})
    assert is_problem(answer, 422)["field"] == "jobs[1].tags[0]"
    assert program.get("/api/v1/jobs").json()["items"] == []


def test_a_large_body_is_read_beside_the_loop() -> None:
    """Nobody else waits for it; a small one is not worth the way there and back."""
    loop, readers = threading.get_ident(), []

    class Reading(Shape):
        text: str

        @field_validator("text")
        @classmethod
        def note(cls, value: str) -> str:
            readers.append(threading.get_ident())
            return value

    async def reading(request: Request) -> Reading:
        return await bodies.body(Reading)(request)

    for size in (10, bodies.LARGE_BYTES):
        sent = json.dumps({"text": "x" * size}).encode()
        request = Request({"type": "http", "headers": [(b"content-type", b"application/json")]}, arriving(sent))
        assert asyncio.run(reading(request)).text == "x" * size
    assert [reader == loop for reader in readers] == [True, False]


def arriving(sent: bytes) -> Callable[[], Awaitable[Message]]:
    """A body that has come whole."""

    async def receive() -> Message:
        return {"type": "http.request", "body": sent, "more_body": False}

    return receive
