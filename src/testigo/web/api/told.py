"""What the OpenAPI document tells of a route besides its parameters: names, examples, and how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from testigo.errors import (
    ActionIdCollision,
    AuthorityUnavailable,
    Busy,
    Error,
    Forbidden,
    Invalid,
    KeyBusy,
    ReceiptExpired,
    TooManyRequests,
    Unauthenticated,
)
from testigo.web.api.shapes import Shape
from testigo.web.problems import MEDIA_TYPE, problem_of

__all__ = ["AGAIN", "ANY_ROUTE", "CHANGES", "give_examples", "told"]

ANY_ROUTE = (Unauthenticated, Forbidden, Invalid, TooManyRequests, Busy, AuthorityUnavailable)
"""How any route may refuse."""

AGAIN = (ActionIdCollision, ReceiptExpired, KeyBusy)
"""How a route may refuse whose requests may be named and sent again."""

SHOWN: dict[str, dict[str, object]] = {}
"""The examples of each operation by its id: of its answer by media type, and of its body."""

_BODY = "body"

PROBLEM = {"$ref": "#/components/schemas/Problem"}

CHANGES: dict[str, Any] = {
    "ETag": {"description": "The job's revision, in quotes.", "schema": {"type": "string"}, "example": '"7"'}
}
"""The header of an answer that shows a job."""


def told(
    operation_id: str,
    summary: str,
    *,
    shows: object,
    asks: type[Shape] | None = None,
    asks_so: object = None,
    refuses: tuple[type[Error], ...] = (),
    status: int = 200,
    also: Mapping[int, str] | None = None,
    media: str = "application/json",
    headers: Mapping[str, Any] | None = None,
    anyone: bool = False,
) -> dict[str, Any]:
    """The options of a route: `shows` is an example of its answer, `asks` the shape of its body with an example.

    `refuses` are the errors that are its own, `also` further statuses with what they mean. A route for `anyone`
    does not refuse as others do.
    """
    SHOWN[operation_id] = {media: shows} if asks is None else {media: shows, _BODY: asks_so}
    answer: dict[str, Any] = {"content": {media: {}}}
    if headers:
        answer["headers"] = dict(headers)
    responses: dict[int | str, dict[str, Any]] = {status: answer}
    for other, meaning in (also or {}).items():
        responses[other] = {**answer, "description": meaning}
    for code, refusal in _refusals(refuses if anyone else (*ANY_ROUTE, *refuses)).items():
        there = responses.setdefault(code, refusal)
        there["content"] = {**there["content"], **refusal["content"]}
    options: dict[str, Any] = {
        "operation_id": operation_id,
        "summary": summary,
        "status_code": status,
        "responses": responses,
    }
    if asks is not None:
        schema = {"$ref": f"#/components/schemas/{asks.__name__}"}
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        options["openapi_extra"] = {"requestBody": body}
    if anyone:
        options["openapi_extra"] = {"security": []}
    return options


def give_examples(operation: dict[str, Any]) -> None:
    """Put into a described operation the examples that it was told with.

    FastAPI leaves out of what passes through it every member that is null, and answers have such members; and it
    knows the schema of one status alone.
    """
    shown = SHOWN[operation["operationId"]]
    contents = [
        (media, content)
        for response in operation["responses"].values()
        for media, content in response["content"].items()
        if media in shown
    ]
    schemas = {media: content["schema"] for media, content in contents if "schema" in content}
    for media, content in contents:
        content |= {"example": shown[media], **({"schema": schemas[media]} if media in schemas else {})}
    if _BODY in shown:
        operation["requestBody"]["content"]["application/json"]["example"] = shown[_BODY]


def _refusals(errors: tuple[type[Error], ...]) -> dict[int | str, dict[str, Any]]:
    """The problems of a route by their status, each error as an example of its own."""
    found: dict[int | str, dict[str, Any]] = {}
    for error in dict.fromkeys(errors):
        status = HTTPStatus(error.http_status)
        response = found.setdefault(
            int(status),
            {
                "description": status.phrase,
                "content": {MEDIA_TYPE: {"schema": PROBLEM, "examples": {}}},
            },
        )
        examples = response["content"][MEDIA_TYPE]["examples"]
        examples[error.code] = {"summary": _meaning(error), "value": _problem(error)}
    return found


def _meaning(error: type[Error]) -> str:
    return " ".join((error.__doc__ or "").split())


def _problem(error: type[Error]) -> dict[str, Any]:
    return problem_of(error(_meaning(error))).told("0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e")
