"""Jobs cancelled, retried, unblocked and forgotten over HTTP: each as it was seen, once, and written down."""

from __future__ import annotations

from typing import Any

import httpx

from testigo.access.roles import Role
from testigo.rules.outcomes import Block, Fail
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import Site


def audited(client: httpx.Client, **wanted: str) -> list[dict[str, Any]]:
    """Rows of the audit."""
    found: list[dict[str, Any]] = client.get("/api/v1/audit", params=wanted).json()["items"]
    return found


def failed(site: Site, client: httpx.Client) -> str:
    """The id of a job that has failed for good."""
    job_id = submitted(client, queue="failing")
    worker = site.world.worker(queues=["failing"])
    worker.settle((worker.take(), Fail("HTTPError", "502", permanent=True)))
    return job_id


def test_a_change_says_which_revision_was_seen(site: Site) -> None:
    """428 without, 409 with the state of now where the job has changed since; the header and the body say the same."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    path = f"/api/v1/jobs/{job_id}/cancel"
    seen = operator.get(f"/api/v1/jobs/{job_id}").json()["revision"]
    is_problem(operator.post(path), 428, "REVISION_REQUIRED")
    is_problem(operator.post(path, json={"reason": "why"}), 428, "REVISION_REQUIRED")
    for sent in ({"headers": {"If-Match": '"17"'}}, {"json": {"expected_revision": 17}}):
        told = is_problem(operator.post(path, **sent), 409, "REVISION_MISMATCH")
        assert told["facts"] == {"job": job_id, "state": "ready", "revision": seen}
    for header in ("17", 'W/"17"', '"1", "2"', '"x"', '"99999999999"', ""):
        assert is_problem(operator.post(path, headers={"If-Match": header}), 422)["field"] == "If-Match"
    both = operator.post(path, headers={"If-Match": f'"{seen}"'}, json={"expected_revision": 17})
    assert is_problem(both, 422)["field"] == "expected_revision"
    assert site.world.state(job_id) == "ready"
    tag = operator.get(f"/api/v1/jobs/{job_id}").headers["etag"]
    assert tag == f'"{seen}"'
    done = operator.post(path, headers={"If-Match": tag}, json={"reason": "wrong input"})
    assert done.json() == {"job": job_id, "how": "cancelled", "state": "cancelled"}
    told = is_problem(operator.post(path, headers={"If-Match": tag}), 409, "REVISION_MISMATCH")
    assert told["facts"] == {"job": job_id, "state": "cancelled", "revision": seen + 1}


def test_a_change_that_is_sent_again_is_done_once(site: Site) -> None:
    """Under one key it has one effect, one row in the audit and one answer; with other content it is refused."""
    operator = site.program(Role.OPERATOR)
    job_id = failed(site, operator)
    tag = operator.get(f"/api/v1/jobs/{job_id}").headers["etag"]
    headers = {"If-Match": tag, "Idempotency-Key": "again"}
    answers = [operator.post(f"/api/v1/jobs/{job_id}/retry", json={"reason": "x"}, headers=headers) for _ in "abc"]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.json()["job"] for answer in answers}) == 1
    is_problem(operator.post(f"/api/v1/jobs/{job_id}/retry", headers=headers), 409, "ACTION_ID_COLLISION")
    (row,) = audited(operator, what="jobs.retry", object=f"job:{job_id}")[-1:]
    assert (row["result"], row["reason"], row["objects"]) == ("done", "x", [f"job:{job_id}"])
    assert len([row for row in audited(operator, what="jobs.retry") if row["result"] == "done"]) == 1


def test_what_runs_is_asked_to_stop(site: Site) -> None:
    """And what has ended stays as it is (spec D-20)."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    worker = site.world.worker()
    lease = worker.take()
    answer = operator.post(f"/api/v1/jobs/{job_id}/cancel", headers={"If-Match": "*"})
    assert answer.json() == {"job": job_id, "how": "requested", "state": "cancelling"}
    worker.succeed(lease)
    answer = operator.post(f"/api/v1/jobs/{job_id}/cancel", headers={"If-Match": "*"})
    assert answer.json()["how"] == "ended"


def test_a_failed_job_is_retried_in_its_place(site: Site) -> None:
    """Its successor is a job of its own; what waits or runs is not retried (spec A-06)."""
    operator = site.program(Role.OPERATOR)
    job_id = failed(site, operator)
    made = operator.post(f"/api/v1/jobs/{job_id}/retry", headers={"If-Match": "*"}).json()
    assert made["supersedes"] == job_id
    assert operator.get(f"/api/v1/jobs/{job_id}").json()["successor"] == made["job"]
    lineage = operator.get(f"/api/v1/jobs/{made['job']}/lineage").json()
    assert [each["job"] for each in lineage["superseded"]] == [job_id]
    told = is_problem(operator.post(f"/api/v1/jobs/{job_id}/retry", headers={"If-Match": "*"}), 409, "STATE_CONFLICT")
    assert told["facts"]["successor"] == made["job"]


def test_a_blocked_job_is_sent_back_to_work(site: Site) -> None:
    """Any other is refused, and the refusal is in the audit (spec A-13)."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    refused = operator.post(f"/api/v1/jobs/{job_id}/unblock", headers={"If-Match": "*"})
    assert is_problem(refused, 409)["facts"]["state"] == "ready"
    worker = site.world.worker()
    worker.settle((worker.take(), Block("no_codec", "the codec")))
    tag = operator.get(f"/api/v1/jobs/{job_id}").headers["etag"]
    done = operator.post(f"/api/v1/jobs/{job_id}/unblock", headers={"If-Match": tag}, json={"reason": "installed"})
    assert done.json() == {"job": job_id}
    assert site.world.state(job_id) == "ready"
    results = [(row["result"], row["code"]) for row in audited(operator, what="jobs.unblock")]
    assert results == [("done", None), ("refused", "STATE_CONFLICT")]


def test_a_job_is_forgotten_with_a_reason(site: Site) -> None:
    """Its tombstone stays; what has not ended is not forgotten."""
    admin = site.program(Role.ADMIN)
    job_id, living = failed(site, admin), submitted(admin)
    path = f"/api/v1/jobs/{job_id}/forget"
    for body in ({}, {"reason": ""}, {"reason": " "}):
        assert is_problem(admin.post(path, json=body, headers={"If-Match": "*"}), 422)["field"] == "reason"
    told = {"reason": "a test"}
    is_problem(admin.post(f"/api/v1/jobs/{living}/forget", json=told, headers={"If-Match": "*"}), 409)
    assert admin.post(path, json=told, headers={"If-Match": "*"}).json() == {"job": job_id}
    gone = is_problem(admin.get(f"/api/v1/jobs/{job_id}"), 404, "NOT_FOUND")
    assert gone["facts"]["state"] == "permanent_failure"
    (tombstone,) = admin.get(f"/api/v1/jobs/{job_id}/tombstones").json()["items"]
    assert "a test" in tombstone["note"]


def test_what_is_not_there_is_not_found(site: Site) -> None:
    """Each verb, each refusal a problem; an id that is none is refused as such."""
    admin = site.program(Role.ADMIN)
    nobody = "0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e"
    for verb in ("cancel", "retry", "unblock", "forget"):
        for headers in ({"If-Match": "*"}, {"If-Match": '"7"'}):
            answer = admin.post(f"/api/v1/jobs/{nobody}/{verb}", json={"reason": "why"}, headers=headers)
            is_problem(answer, 404, "NOT_FOUND")
        for wrong in ("x", nobody.upper(), "%00", "%ED%A0%80", "..%2F.."):
            answer = admin.post(f"/api/v1/jobs/{wrong}/{verb}", json={"reason": "why"}, headers={"If-Match": "*"})
            assert answer.status_code in (404, 405, 422), answer.text


def test_words_from_outside_are_kept_fit(site: Site) -> None:
    """A reason with what no terminal and no database takes is kept, and the audit shows it (field case R46)."""
    operator = site.program(Role.OPERATOR)
    job_id = submitted(operator)
    content = b'{"reason": "a\\u0000b\\u001b[31m <script>"}'
    headers = {"Content-Type": "application/json", "If-Match": "*"}
    assert operator.post(f"/api/v1/jobs/{job_id}/cancel", content=content, headers=headers).status_code == 200
    (row,) = audited(operator, what="jobs.cancel")
    assert row["reason"] == "a\ufffdb\ufffd[31m <script>"
