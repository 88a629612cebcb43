"""Short words for what these tests ask of the API."""

from __future__ import annotations

from typing import Any

import httpx

from testigo.authority.actions import new_id

__all__ = ["is_problem", "submitted"]


def is_problem(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The members of a refusal, which is a problem of this status and code (RFC 9457)."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["status"] == status
    assert told["type"] == f"urn:testigo:error:{told['code']}"
    assert told["request_id"] == answer.headers["x-request-id"]
    assert told["remedy"]
    if code is not None:
        assert told["code"] == code, told
    return told


def submitted(client: httpx.Client, /, **job: Any) -> str:
    """The id of a job that was submitted."""
    body = {"kind": "work", "queue": "q", **job}
    answer = client.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": new_id()})
    assert answer.status_code in (200, 201), answer.text
    found: str = answer.json()["job"]
    return found
