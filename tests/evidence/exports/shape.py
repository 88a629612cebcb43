"""The members of SARIF 2.1.0 that an export uses, as the standard's own schema shapes them; no other is let through."""

from __future__ import annotations

from typing import Any

__all__ = ["SARIF"]


def _object(members: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def _array(items: dict[str, Any], *, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


TEXT: dict[str, Any] = {"type": "string"}
POSITION: dict[str, Any] = {"type": "integer", "minimum": 1}
BAG: dict[str, Any] = {"type": "object"}
LEVEL: dict[str, Any] = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object({"text": TEXT}, "text")
ARTIFACT = _object({"uri": {"type": "string", "format": "uri-reference"}, "uriBaseId": TEXT})
REGION = _object(
    {
        "startLine": POSITION,
        "startColumn": POSITION,
        "endLine": POSITION,
        "endColumn": POSITION,
        "snippet": _object({"text": TEXT}, "text"),
    },
    "startLine",
)
LOCATION = _object(
    {"physicalLocation": _object({"artifactLocation": ARTIFACT, "region": REGION}, "artifactLocation")},
    "physicalLocation",
)
SUPPRESSION = _object(
    {
        "kind": {"enum": ["inSource", "external"]},
        "status": {"enum": ["accepted", "underReview", "rejected"]},
        "justification": TEXT,
    },
    "kind",
)
RESULT = _object(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": _array(LOCATION),
        "fingerprints": {"type": "object", "additionalProperties": TEXT},
        "suppressions": _array(SUPPRESSION, unique=True),
        "properties": BAG,
    },
    "message",
)
RULE = _object({"id": TEXT, "name": TEXT}, "id")
DRIVER = _object({"name": TEXT, "version": TEXT, "rules": _array(RULE, unique=True)}, "name")
NOTIFICATION = _object({"level": LEVEL, "message": MESSAGE, "locations": _array(LOCATION, unique=True)}, "message")
INVOCATION = _object(
    {
        "executionSuccessful": {"type": "boolean"},
        "exitCodeDescription": TEXT,
        "toolExecutionNotifications": _array(NOTIFICATION),
    },
    "executionSuccessful",
)
RUN = _object(
    {
        "tool": _object({"driver": DRIVER}, "driver"),
        "automationDetails": _object({"id": TEXT}),
        "originalUriBaseIds": {"type": "object", "additionalProperties": _object({"description": MESSAGE})},
        "invocations": _array(INVOCATION),
        "results": _array(RESULT),
        "properties": BAG,
    },
    "tool",
)
SARIF = _object({"$schema": TEXT, "version": {"enum": ["2.1.0"]}, "runs": _array(RUN)}, "version", "runs")
