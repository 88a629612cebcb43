"""What people decided about an analysis's findings, as OpenVEX 0.2.0 says it.

| decision | status | and why |
| --- | --- | --- |
| open, needs_review | under_investigation | |
| gate_exempt, accepted_risk | affected | the reason, as the action that is taken |
| ignore, false_positive | not_affected | the reason, as the impact |
| fixed | fixed | |

Notes tell who decided, and the reason where no other member has it. A finding about which nobody ever decided is not
in it: VEX tells what somebody says, and nobody said anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from testigo.evidence.exports.collected import Collected
from testigo.evidence.model import FindingView
from testigo.rules.evidence.review import Decision

__all__ = ["CONTEXT", "STATUSES", "openvex"]

CONTEXT = "https://openvex.dev/ns/v0.2.0"

STATUSES = {
    Decision.OPEN: ("under_investigation", "status_notes"),
    Decision.NEEDS_REVIEW: ("under_investigation", "status_notes"),
    Decision.GATE_EXEMPT: ("affected", "action_statement"),
    Decision.ACCEPTED_RISK: ("affected", "action_statement"),
    Decision.IGNORE: ("not_affected", "impact_statement"),
    Decision.FALSE_POSITIVE: ("not_affected", "impact_statement"),
    Decision.FIXED: ("fixed", "status_notes"),
}
"""What each decision is in VEX, and which member tells its reason."""


def openvex(collected: Collected) -> Iterator[str]:
    """The text of the document, in pieces. Its version is the collection's revision: it is newer with each change."""
    view = collected.detail.view
    head = {
        "@context": CONTEXT,
        "@id": f"urn:testigo:analysis:{view.id}:vex",
        "author": f"testigo, for {view.project}",
        "version": view.revision,
        "timestamp": _moment(datetime.now(UTC)),
    }
    yield _text(head)[:-1] + ',"statements":['
    apart = ""
    for found in collected.findings():
        if found.decided_at is not None:
            yield apart + _text(_statement(found, view.project, found.decided_at))
            apart = ","
    yield "]}\n"


def _statement(view: FindingView, project: str, decided_at: datetime) -> dict[str, Any]:
    finding = view.finding
    status, because = STATUSES[view.decision]
    product: dict[str, Any] = {"@id": f"pkg:generic/{quote(project, safe='')}"}
    if finding.path is not None:
        product["subcomponents"] = [{"@id": f"{product['@id']}#{quote(finding.path, safe='/')}"}]
    said = view.review.reason
    notes = [f"Decided by {view.decided_by}.", *([said] if said and because == "status_notes" else ())]
    told: dict[str, Any] = {
        "@id": f"urn:testigo:finding:{view.id}:{view.review.revision}",
        "vulnerability": {
            "@id": f"urn:testigo:fingerprint:{finding.fingerprint}",
            "name": f"{finding.analyser}/{finding.rule}",
            "description": finding.message,
        },
        "products": [product],
        "status": status,
        "timestamp": _moment(decided_at),
        "status_notes": " ".join(notes),
    }
    return told if because == "status_notes" else told | {because: said}


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
