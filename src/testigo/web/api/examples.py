"""Examples of what the API answers and is sent, as the OpenAPI document and the reference show them."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AUDIT",
    "BATCH",
    "CAUSE",
    "CLOUDEVENT",
    "EXPLANATION",
    "HELD",
    "ITEM",
    "JOB",
    "JOB_ID",
    "KIND",
    "LATE",
    "LINEAGE",
    "LOG",
    "NEW_JOB",
    "OPERATION",
    "OTHER_ID",
    "QUEUE",
    "RECEIPT",
    "RUN",
    "SERIES",
    "STREAM",
    "SUMMARY",
    "TOMBSTONE",
    "TOTALS",
    "WHO",
    "WORKER",
    "page",
]

JOB_ID = "0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e"
OTHER_ID = "0198f3c4-0d2e-7a10-8f3b-2c4d6e8f0a1b"
AT = "2026-11-30T12:01:00Z"
LATER = "2026-11-30T12:01:02.250000Z"

NEW_JOB: dict[str, Any] = {
    "kind": "media.transcode",
    "queue": "media",
    "payload": {"path": "a.mp4", "height": 720},
    "tags": ["order:881"],
    "attempts": 5,
}

BATCH: dict[str, Any] = {"jobs": [NEW_JOB, {"kind": "report", "key": "monthly-2026-11"}]}

SUMMARY: dict[str, Any] = {
    "id": JOB_ID,
    "queue": "media",
    "kind": "media.transcode",
    "state": "permanent_failure",
    "phase": "failed",
    "reason": "attempts",
    "client": "shop",
    "key": "order-17",
    "tags": ["order:881"],
    "priority": 0,
    "revision": 10,
    "epoch": 3,
    "failures": 3,
    "losses": 0,
    "attempts": 3,
    "created_at": AT,
    "due_at": None,
    "started_at": LATER,
    "finished_at": LATER,
    "agent": None,
    "error_code": "HTTPError",
    "error_message": "502 from the bucket",
    "successor": None,
}

JOB: dict[str, Any] = {
    "id": JOB_ID,
    "queue": "media",
    "kind": "media.transcode",
    "stream": "media",
    "client": "shop",
    "key": "order-17",
    "tags": ["order:881"],
    "supersedes": None,
    "successor": None,
    "priority": 0,
    "created_at": AT,
    "start_by": None,
    "finish_by": None,
    "attempts": 3,
    "crash_limit": 3,
    "timeout_seconds": 120.0,
    "terms": {
        "backoff": {"type": "exponential", "first_seconds": 2.0, "cap_seconds": 600.0, "jitter": True},
        "delay_limit_seconds": None,
        "cost_limit": None,
    },
    "full_events": False,
    "state": "running",
    "phase": "running",
    "reason": None,
    "unadmitted": False,
    "is_parent": False,
    "revision": 7,
    "epoch": 2,
    "failures": 1,
    "losses": 0,
    "releases": 0,
    "waited_seconds": 1.4,
    "cost": 0.0,
    "ready_at": AT,
    "due_at": None,
    "started_at": LATER,
    "finished_at": None,
    "owner": {
        "lease_id": "0198f3c3-1111-7c43-9d0e-5b1f6a2c3d4e",
        "session_id": "0198f3a0-2222-7c43-9d0e-5b1f6a2c3d4e",
        "agent": "media-1",
        "session_epoch": 4,
        "session_state": "open",
        "leased_at": LATER,
        "started_at": LATER,
    },
    "limitations": [],
    "error": {"code": "HTTPError", "message": "502 from the bucket", "detail": "Traceback …"},
    "payload_bytes": 30,
    "checkpoint_bytes": None,
    "output_bytes": None,
    "trace": None,
    "progress": {"epoch": 2, "done": 40.0, "total": 100.0, "note": "encoding", "at": LATER, "eta_seconds": 3.0},
    "redacted": False,
}

FINDING: dict[str, Any] = {
    "code": "queue_paused",
    "text": "The queue 'media' is paused since 2026-11-30T11:00:00+00:00 by user:ana: the disk is full.",
    "facts": {"name": "media", "actor": "user:ana", "note": "the disk is full", "at": "2026-11-30T11:00:00+00:00"},
    "until": None,
}

EXPLANATION: dict[str, Any] = {
    **FINDING,
    "job": JOB_ID,
    "state": "ready",
    "blockers": [FINDING],
    "redacted": False,
}

CLOUDEVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "0198f3c3-9d0e-7c43-9d0e-5b1f6a2c3d4e",
    "source": "/organisations/default",
    "type": "job.failed",
    "subject": JOB_ID,
    "time": LATER,
    "datacontenttype": "application/json",
    "dataschema": "urn:testigo:event:job.failed:1",
    "stream": "media",
    "sequence": "0000000000000001205",
    "revision": 4,
    "actor": "media-1",
    "action": "0198f3a0-2222-7c43-9d0e-5b1f6a2c3d4e:12",
    "data": {"state": "retry_waiting", "epoch": 1, "code": "HTTPError", "failures": 1, "attempts": 3},
}

RUN: dict[str, Any] = {
    "epoch": 1,
    "agent": "media-1",
    "leased_at": None,
    "started_at": AT,
    "ended_at": LATER,
    "how": "job.failed",
    "ending": {"state": "retry_waiting", "epoch": 1, "code": "HTTPError", "failures": 1, "attempts": 3},
}

LOG: dict[str, Any] = {
    "items": [{"epoch": 2, "n": 1, "at": LATER, "level": "INFO", "text": "from 00:41 on"}],
    "next": None,
    "after": "2.1",
    "dropped": 0,
}

LATE: dict[str, Any] = {
    "id": OTHER_ID,
    "job": JOB_ID,
    "epoch": 1,
    "lease_id": "0198f3c3-1111-7c43-9d0e-5b1f6a2c3d4e",
    "session_id": "0198f3a0-2222-7c43-9d0e-5b1f6a2c3d4e",
    "outcome": "succeed",
    "note": None,
    "document_bytes": 18,
    "document": '{"path":"a.webm"}',
    "found_state": "running",
    "at": LATER,
    "redacted": False,
}

TOMBSTONE: dict[str, Any] = {
    "id": OTHER_ID,
    "job": JOB_ID,
    "what": "redacted",
    "state": "succeeded",
    "digest": "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    "actor": "user:ana",
    "action": "0198f3c5-0000-7c43-9d0e-5b1f6a2c3d4e",
    "note": "a customer asked for it",
    "at": LATER,
}

LINEAGE: dict[str, Any] = {
    "job": JOB_ID,
    "superseded": [],
    "successors": [
        {"job": OTHER_ID, "state": "ready", "pruned": False, "policy": None, "closed": None},
    ],
    "parents": [],
    "children": [],
    "more": [],
}

QUEUE: dict[str, Any] = {
    "name": "media",
    "ready": {"n": 10000, "more": True},
    "delayed": {"n": 14, "more": False},
    "leased": {"n": 21, "more": False},
    "next_due_at": LATER,
    "sessions": {"n": 2, "more": False},
    "events": "default",
    "stripes": 1,
    "pause": {"actor": "user:ana", "note": "the disk is full", "at": AT},
}

KIND: dict[str, Any] = {
    "name": "media.transcode",
    "waiting": 120,
    "leased": 8,
    "failed": 3,
    "sessions": 2,
    "pause": None,
}

WORKER: dict[str, Any] = {
    "id": "0198f3a0-2222-7c43-9d0e-5b1f6a2c3d4e",
    "agent": "media-1",
    "epoch": 4,
    "state": "open",
    "beat": 312,
    "low_water": 80,
    "term_seconds": 15.0,
    "exclusive": True,
    "queues": ["media"],
    "kinds": ["media.transcode"],
    "host": "8f3c2a1b",
    "processes": {"keeper": {"pid": 442}},
    "opened_at": AT,
    "closed_at": None,
    "leases": {"n": 4, "more": False},
}

STREAM: dict[str, Any] = {"name": "media", "floor": 0, "head": 1205, "appended_at": LATER}

RECEIPT: dict[str, Any] = {
    "actor": "token:shop",
    "action": "order-17",
    "digest": "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    "answer": {"jobs": [JOB_ID], "held": []},
    "created_at": AT,
}

AUDIT: dict[str, Any] = {
    "n": 812,
    "at": AT,
    "actor": "user:ana",
    "role": "operator",
    "via": "login",
    "credential": "0198f3a0-3333-7c43-9d0e-5b1f6a2c3d4e",
    "what": "jobs.cancel",
    "objects": [f"job:{JOB_ID}"],
    "reason": "the bucket is gone",
    "result": "done",
    "code": None,
    "action": "0198f3c5-0000-7c43-9d0e-5b1f6a2c3d4e",
    "asked_at": AT,
    "digest": "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    "address": "192.0.2.7",
    "request": "0198f3c5-1111-7c43-9d0e-5b1f6a2c3d4e",
    "chain": "sha256:d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35",
}

HELD: dict[str, Any] = {
    "id": JOB_ID,
    "kind": "media.transcode",
    "queue": "media",
    "state": "running",
    "epoch": 2,
    "started_at": LATER,
}

FILTER: dict[str, Any] = {
    "id_prefix": None,
    "queue": "media",
    "kind": None,
    "state": ["permanent_failure"],
    "tag": None,
    "client": None,
    "worker": None,
    "error": "HTTPError",
    "cause": None,
    "unresolved": True,
    "created_after": None,
    "created_before": None,
    "failures_min": None,
    "payload_path": [],
    "payload_value": None,
}

OPERATION: dict[str, Any] = {
    "id": "0198f3c6-0000-7c43-9d0e-5b1f6a2c3d4e",
    "verb": "retry",
    "filter": FILTER,
    "reason": "the outage is over",
    "actor": "user:ana",
    "action": "outage-2026-11-30",
    "began_at": AT,
    "state": "running",
    "total": 9,
    "done": 4,
    "refused": 1,
    "waiting": 4,
    "complete": True,
    "ended_at": None,
    "stopped_by": None,
    "hindrance": None,
}

ITEM: dict[str, Any] = {
    "n": 1,
    "job": JOB_ID,
    "revision": 7,
    "outcome": "done",
    "state": "permanent_failure",
    "code": None,
    "message": None,
    "successor": OTHER_ID,
    "now": "ready",
}

DURATIONS: dict[str, Any] = {"p50": 0.4, "p95": 3.2, "p99": 5.0}

SERIES: dict[str, Any] = {
    "measure": "run",
    "span": "1h",
    "points": [{"at": AT, "n": 412, "durations": DURATIONS}],
    "total": 412,
}

TOTALS: dict[str, Any] = {
    "name": "media",
    "requested": 420,
    "succeeded": 412,
    "failed": 3,
    "retried": 9,
    "lost": 0,
    "cancelled": 1,
    "wait": DURATIONS,
    "run": DURATIONS,
}

WHO: dict[str, Any] = {
    "name": "shop",
    "actor": "token:shop",
    "role": "operator",
    "via": "token",
    "rights": ["read", "documents", "audit", "submit", "cancel", "retry", "unblock", "pause", "drain"],
}

CAUSE: dict[str, Any] = {
    "id": "0123456789abcdef",
    "code": "HTTPError",
    "message": "502 from the bucket",
    "kinds": ["media.transcode"],
    "queues": ["media"],
    "open": 9,
    "retrying": 1,
    "first_at": AT,
    "last_at": LATER,
    "sample": JOB_ID,
}


def page(*items: object) -> dict[str, Any]:
    """A listing's answer with these items."""
    return {"items": list(items), "next": None, "complete": True}
