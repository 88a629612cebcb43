"""Examples of what the API answers of evidence, as the OpenAPI document and the reference show them."""

from __future__ import annotations

from typing import Any

from testigo.web.api.examples import AT, JOB_ID, LATER, OTHER_ID

__all__ = [
    "ADVICE",
    "ANALYSIS",
    "ANALYSIS_DETAIL",
    "ANALYSIS_ID",
    "ARTIFACT",
    "DECIDED",
    "EXEMPTION",
    "FINDING",
    "FINDING_DETAIL",
    "FINDING_ID",
    "OLD_ID",
    "POLICY",
    "PROJECT",
]

ANALYSIS_ID = "0198f3d0-1c3a-7b10-8f3b-2c4d6e8f0a1b"
OLD_ID = "0198f3cf-0a1b-7b10-8f3b-2c4d6e8f0a1b"
FINDING_ID = "0198f3d0-9d1e-7f10-8f3b-2c4d6e8f0a1b"
DIGEST = "sha256:" + "5f" * 32

POLICY: dict[str, Any] = {
    "thresholds": {"critical": 0, "high": 0},
    "by_analyser": {"detect-secrets": {"medium": 0}},
    "new_only": False,
    "honour_suppressions": False,
}

PROJECT: dict[str, Any] = {
    "name": "shop",
    "created_at": AT,
    "analyses": 5,
    "policy": POLICY,
    "policy_revision": 1,
    "policy_by": "user:ana",
    "policy_at": AT,
    "policy_reason": "no secrets",
    "baseline": None,
    "latest": ANALYSIS_ID,
    "latest_state": "complete",
    "latest_verdict": "failed",
}

EXEMPTION: dict[str, Any] = {
    "project": "shop",
    "analyser": "ruff",
    "fingerprint": DIGEST,
    "state": "active",
    "reason": "until the gateway is replaced",
    "reviewer": "user:ana",
    "granted_at": AT,
    "expires_at": LATER,
    "revision": 1,
    "ended_at": None,
}

ANALYSIS: dict[str, Any] = {
    "id": ANALYSIS_ID,
    "project": "shop",
    "n": 5,
    "source": "src",
    "state": "complete",
    "revision": 7,
    "analysers": ["ruff"],
    "actor": "user:ana",
    "began_at": AT,
    "ended_at": LATER,
    "reason": None,
    "persisted": True,
    "publish_job": OTHER_ID,
    "baseline": None,
    "scope": None,
    "left_out": {"binary": 2, "repository": 1},
    "supersedes": None,
    "successor": None,
    "findings": 3,
    "artifacts": 1,
    "counts": {"critical": 0, "high": 1, "medium": 2, "low": 0, "info": 0},
    "counting": {"critical": 0, "high": 1, "medium": 0, "low": 0, "info": 0},
    "verdict": "failed",
    "evaluated_at": LATER,
}

PART: dict[str, Any] = {
    "n": 0,
    "analyser": "ruff",
    "job_id": JOB_ID,
    "files": 40,
    "analyser_version": "0.14.7",
    "run": "0198f3d0-0d2e-7a10-8f3b-2c4d6e8f0a1b",
    "request": DIGEST,
    "result": DIGEST,
    "artifact_manifest": DIGEST,
    "provenance": {"host": "host-a"},
    "outcome": "complete",
    "reasons": [],
    "coverage": {
        "in_scope": 40,
        "analysed": 39,
        "skipped_total": 0,
        "failed_total": 1,
        "skipped": [],
        "failed": [{"path": "src/old.py", "reason": "it is not UTF-8"}],
    },
    "findings": 3,
    "started_at": AT,
    "ended_at": LATER,
}

ANALYSIS_DETAIL: dict[str, Any] = {
    "view": ANALYSIS,
    "parts": [PART],
    "summary": [
        {
            "analyser": "ruff",
            "severity": "high",
            "decision": "open",
            "suppressed": False,
            "known": False,
            "findings": 1,
        }
    ],
    "gate": {
        "verdict": "failed",
        "reasons": [
            {
                "code": "THRESHOLD_EXCEEDED",
                "analyser": None,
                "severity": "high",
                "found": 1,
                "allowed": 0,
                "text": "1 high finding counts; none may pass",
            }
        ],
        "counted": {"critical": 0, "high": 1, "medium": 0, "low": 0, "info": 0},
        "policy": POLICY,
        "policy_revision": 1,
        "kept": "failed",
        "evaluated_at": LATER,
    },
    "not_asked": [],
}

ADVICE: dict[str, Any] = {"advisor": "triage-model", "suggests": "false_positive", "because": "it is a placeholder"}

FINDING: dict[str, Any] = {
    "id": FINDING_ID,
    "analysis_id": ANALYSIS_ID,
    "part": 0,
    "analyser": "ruff",
    "rule": "S602",
    "rule_name": "subprocess-popen-with-shell-equals-true",
    "severity": "high",
    "level": "error",
    "path": "src/shop/backup.py",
    "line": 12,
    "end_line": 12,
    "column": 5,
    "end_column": 40,
    "message": "`subprocess` call with `shell=True` identified, security issue",
    "snippet": "    run(command, shell=True)",
    "fingerprint": DIGEST,
    "fingerprint_by": "computed",
    "suppressed": False,
    "metadata": {"cwe": "CWE-78"},
    "decision": "open",
    "reason": "",
    "revision": 1,
    "decided_by": None,
    "decided_at": None,
    "advice": ADVICE,
    "advised_at": LATER,
    "known": False,
    "exempt": False,
    "redacted": False,
}

FINDING_DETAIL: dict[str, Any] = {
    "view": FINDING,
    "project": "shop",
    "n": 5,
    "revision": 7,
    "history": [],
    "presence": "present",
    "exemption": EXEMPTION,
    "sightings": [
        {"analysis_id": ANALYSIS_ID, "n": 5, "state": "complete", "finding_id": FINDING_ID, "decision": "open"}
    ],
}

DECIDED: dict[str, Any] = {
    "analysis_id": ANALYSIS_ID,
    "findings": [{"finding_id": FINDING_ID, "decided": True, "decision": "false_positive", "revision": 2}],
    "verdict": "passed",
    "revision": 8,
}

ARTIFACT: dict[str, Any] = {
    "id": "0198f3d0-aaaa-7f10-8f3b-2c4d6e8f0a1b",
    "analysis_id": ANALYSIS_ID,
    "part": 0,
    "name": "sbom.cdx.json",
    "media_type": "application/vnd.cyclonedx+json",
    "bytes": 18_231,
    "digest": DIGEST,
    "raw_digest": DIGEST,
    "attestation": DIGEST,
    "published_at": LATER,
}
