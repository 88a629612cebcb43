"""The OpenAPI 3.1 document of the API, whole: each route with its examples and problems, and how to be known."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRouter
from pydantic.json_schema import models_json_schema

from testigo.web.api.analyses import CancellingAnalysis, ReprocessingAnalysis
from testigo.web.api.found import Advising, Deciding, DeletingFinding, EndingExemption, Exempting
from testigo.web.api.jobs.asked import Forgetting, NewBatch, NewJobShape, Steering
from testigo.web.api.operations import Beginning, Looking
from testigo.web.api.pausing import Reason
from testigo.web.api.projects import SettingGate
from testigo.web.api.shapes import PageShape
from testigo.web.api.told import give_examples
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import CSRF_HEADER

__all__ = ["document"]

_ASKED = (
    NewJobShape, NewBatch, Steering, Forgetting, Reason, Looking, Beginning, SettingGate, CancellingAnalysis,
    ReprocessingAnalysis, Deciding,
    Advising, Exempting, EndingExemption, DeletingFinding,
)  # fmt: skip
"""The shapes of bodies: routes read those themselves, so that FastAPI does not know them."""

_ABOUT = f"""
Durable work over HTTP: submit jobs, watch them and steer them. Each route is a thin door over one command.

**Who asks.** Send a token as `Authorization: Bearer testigo_…`; `testigo token create` makes one. A browser's login
works too; it sends the header `{CSRF_HEADER}` with whatever changes something.

**Sent again.** A request with an `Idempotency-Key` is done once, however often it is sent, and answered alike; with
other content it is refused with 409.

**As it was seen.** Whatever changes a job says at which revision the job was seen: the ETag of its answer as
`If-Match`, or `expected_revision`. 428 where neither is given; 409, with the state of now, where the job has changed.

**Pages.** Listings answer `items` and the address of the `next` page. Cursors are opaque.

**Refusals** are problems (RFC 9457) with a stable `code`, the `field` and `limit` that were broken, and a `remedy`.
Where documents may not be seen, `redacted` is true, and what handlers worded is left out.
"""

_PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "Why a request was not answered as it was meant (RFC 9457).",
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "urn:testigo:error: and the code."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, in a sentence."},
        "code": {"type": "string", "description": "The error's name, which never changes."},
        "field": {"type": "string", "description": "The part of the request that was refused."},
        "limit": {"type": "string", "description": "The bound that it broke."},
        "remedy": {"type": "string", "description": "What to do."},
        "request_id": {"type": "string", "description": "Under which the server's log speaks of the request."},
        "facts": {"type": "object", "description": "Further named values, such as a job's state and revision now."},
    },
    "required": ["type", "title", "status", "detail", "code", "remedy", "request_id"],
    "additionalProperties": False,
}

_SCHEMES: dict[str, Any] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: `testigo token create` makes one."},
    "login": {
        "type": "apiKey",
        "in": "cookie",
        "name": LOGIN_COOKIE,
        "description": f"A browser's login. What changes something also needs {CSRF_HEADER} and our own origin.",
    },
}

_REF = "#/components/schemas/"
_NAMES = {
    "testigo__authority__cancel__How": "HowCancelled",
    "testigo__authority__submissions__How": "HowSubmitted",
    "testigo__authority__explain__findings__Code": "Code",
    "testigo__rules__evidence__gate__Code": "GateCode",
    "testigo__operations__model__Outcome": "Outcome",
    "testigo__rules__evidence__coverage__Outcome": "CoverageOutcome",
    "testigo__web__api__jobs__shown__FindingShape": "Finding",
    "testigo__web__api__found__FindingShape": "EvidenceFinding",
}
"""Names for what several modules call alike."""

_TAGS = {
    "health": "Whether the server lives and can answer.",
    "overview": "What stands now, over all jobs.",
    "jobs": "One job, or a list of them: submitted, looked at, steered.",
    "operations": "One action over many jobs.",
    "queues": "Where jobs wait.",
    "kinds": "What jobs do.",
    "workers": "Who does them.",
    "events": "What happened, in order and without a gap.",
    "receipts": "What commands answered.",
    "statistics": "What was counted and measured over time.",
    "projects": "Whose source is analysed, and what its gate lets through.",
    "analyses": "What was looked at, and what the gate says of it.",
    "findings": "What was found, and what people decided about it.",
    "artifacts": "What analyses left to be kept.",
    "audit": "Who did what.",
}


def document(*routers: APIRouter) -> dict[str, Any]:
    """The document of these routes."""
    described = get_openapi(
        title="testigo",
        version=version("testigo"),
        summary="Work that cannot be lost, results that can be proved.",
        description=_ABOUT.strip(),
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        tags=[{"name": name, "description": told} for name, told in _TAGS.items()],
        routes=[route for router in routers for route in router.routes],
    )
    components: dict[str, Any] = described.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **_asked(), "Problem": _PROBLEM}
    components["securitySchemes"] = _SCHEMES
    described["security"] = [{scheme: []} for scheme in _SCHEMES]
    named: dict[str, Any] = _renamed(described, {name: _public(name) for name in components["schemas"]})
    schemas = named["components"]["schemas"]
    whole = {"description": PageShape.__doc__}
    named["components"]["schemas"] = {name: {**whole, **schemas[name], "title": name} for name in sorted(schemas)}
    for methods in named["paths"].values():
        for operation in methods.values():
            give_examples(operation)
            _explain(operation, schemas)
    return named


def _asked() -> dict[str, Any]:
    """The schemas of what routes read by themselves."""
    _, schema = models_json_schema(
        [(shape, "validation") for shape in _ASKED], ref_template="#/components/schemas/{model}"
    )
    found: dict[str, Any] = schema["$defs"]
    return found


def _public(name: str) -> str:
    """A schema's name for those who do not know our modules: PageShape_JobShape_ is JobPage."""
    if name in _NAMES:
        return _NAMES[name]
    outer, _, inner = name.removesuffix("_").partition("_")
    return (inner + outer).replace("Shape", "")


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The document with its schemas under other names."""
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _renamed(each, names) for name, each in value.items()}
    if isinstance(reference := found.get("$ref"), str):
        found["$ref"] = _REF + names[reference.removeprefix(_REF)]
    if set(found) >= {"schemas", "securitySchemes"}:
        found["schemas"] = {names[name]: schema for name, schema in found["schemas"].items()}
    return found


def _explain(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Say of each answer what its schema says of itself, where nothing better is said."""
    for response in operation["responses"].values():
        if response["description"] != "Successful Response":
            continue
        schema = response.get("content", {}).get("application/json", {}).get("schema", {})
        told = schemas.get(schema.get("$ref", "").removeprefix(_REF), {}).get("description")
        response["description"] = told or f"{operation['summary']}."
