"""The page of the HTTP API: every route with its right, parameters, examples and problems, and every shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi.routing import iter_route_contexts

from docs.generate.markdown import page, prose, sentence, table
from testigo.access.roles import RIGHTS, Right
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes
from testigo.web.routes import Guarded

__all__ = ["http_page", "operations", "rights"]

INTRO = """
What the server answers below `/api/v1`. The same is in the OpenAPI 3.1 document that it serves at
`/api/v1/openapi.json`; how to use it is told in [Use the HTTP API](../how-to/http-api.md).

Members keep their names and their meaning as long as the path says `v1`; answers may gain members. Times are UTC in
ISO 8601. Unknown members and parameters are refused. A refusal is a problem (RFC 9457); every route may answer 401,
403, 422, 429 and 503 as told in [Errors](errors.md), and only what is its own is listed with it.
"""

COMMON = {"401", "403", "422", "429", "503"}


def http_page() -> str:
    """Every route, noun by noun, and every shape."""
    whole = document(routes.router)
    needs = rights()
    parts = []
    for tag in whole["tags"]:
        parts += [f"## {tag['name'].capitalize()}", tag["description"]]
        for method, path, told in operations(whole):
            if told["tags"] == [tag["name"]]:
                parts += _operation(method, path, told, needs.get(told["operationId"]))
    parts.append("## Shapes")
    for name, schema in whole["components"]["schemas"].items():
        parts += _shape(name, schema)
    return page("HTTP API", "src/testigo/web/api", prose(INTRO), *parts)


def operations(whole: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation of a document."""
    for path, methods in whole["paths"].items():
        for method, told in methods.items():
            yield method.upper(), path, told


def rights() -> dict[str, Right]:
    """The right that each operation needs, by its id; one that is open to everybody is left out."""
    found = {}
    for context in iter_route_contexts(routes.router.routes):
        route = context.original_route
        if isinstance(route, Guarded) and isinstance(route.needs, Right) and route.operation_id:
            found[route.operation_id] = route.needs
    return found


def _operation(method: str, path: str, told: Mapping[str, Any], right: Right | None) -> Iterator[str]:
    yield f"### {method} {path}"
    yield prose(told["description"])
    yield _needs(right)
    rows = [
        [f"`{each['name']}`", each["in"], _type(each["schema"]), sentence(each["description"])]
        for each in told.get("parameters", ())
    ]
    if rows:
        yield table(["parameter", "in", "type", "meaning"], rows)
    if "requestBody" in told:
        (content,) = told["requestBody"]["content"].values()
        yield f"Body: {_type(content['schema'])}, such as"
        yield _example(content["example"], "application/json")
    answered = [status for status in told["responses"] if status.startswith("2")]
    for media, content in told["responses"][answered[0]]["content"].items():
        shape = f": {_type(content['schema'])}" if content.get("schema") else ""
        yield f"Answer {' or '.join(answered)}{shape}, such as"
        yield _example(content["example"], media)
    if own := list(_own_problems(told)):
        yield "Its own problems: " + ", ".join(own) + "."


def _needs(right: Right | None) -> str:
    if right is None:
        return "Open to everybody."
    roles = ", ".join(role for role, may in RIGHTS.items() if right in may)
    return f"Right: `{right}` ({roles})."


def _own_problems(told: Mapping[str, Any]) -> Iterator[str]:
    for status, response in told["responses"].items():
        problem = response["content"].get("application/problem+json")
        if problem and status not in COMMON:
            yield from (f"{status} [`{code}`](errors.md)" for code in problem["examples"])


def _example(example: object, media: str) -> str:
    if not media.endswith("json"):
        return f"```text\n{str(example).rstrip()}\n```"
    return f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"


def _shape(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    yield prose(schema["description"])
    if "enum" in schema:
        yield "One of " + ", ".join(f"`{word}`" for word in schema["enum"]) + "."
    elif "const" in schema:
        yield f"Always `{schema['const']}`."
    required = schema.get("required", ())
    rows = [
        [f"`{member}`" + ("" if member in required else " (optional)"), _type(each), sentence(each.get("description"))]
        for member, each in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(["member", "type", "meaning"], rows)


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with links to shapes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(each) for each in schema[several])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema['items'])}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {_type(schema['additionalProperties'])}"
        case None:
            return "any JSON"
        case kind:
            return str(schema.get("format", kind))
