"""Refusals and failures as answers: RFC 9457 for programs, a page in the same words for people.

Which of the two is decided by the path. Nothing of a failure that is ours is told but its request's id,
under which the log has the rest.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from testigo.errors import Broken, Busy, Error, Invalid, TooManyRequests, Unauthenticated
from testigo.rules.text import tidy
from testigo.web.panel.again import form_page, sent_again
from testigo.web.panel.pages import here, render
from testigo.web.panel.refusals import MEANINGS, UNEXPECTED, meaning
from testigo.web.security.forgery import SAFE
from testigo.web.security.place import path_of

__all__ = ["HTTP_TOLD", "MEDIA_TYPE", "REMEDIES", "Failures", "Problem", "add_handlers", "answer", "problem_of"]

MEDIA_TYPE = "application/problem+json"

_log = logging.getLogger("testigo.web")

_TYPES = "urn:testigo:error:"
_RETRY_AFTER_SECONDS = 2
_UNEXPECTED_REMEDY = "Tell whoever runs this installation the request's id: the log has the rest."
_CORRECT = "Correct the request."
HTTP_TOLD = {
    404: ("NOT_FOUND", "There is nothing at this address.", "Check the address."),
    405: ("METHOD_NOT_ALLOWED", "This address does not take that method.", "Use one of those that Allow names."),
}
"""The code, the detail and the remedy of what the framework refuses by itself."""
_BROKEN_REMEDY = "Whoever runs this installation finds in its log what to do."

REMEDIES = (_CORRECT, _UNEXPECTED_REMEDY, _BROKEN_REMEDY)
"""Those that no error of the tree has."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """What is told of a request that was not answered as it was meant."""

    status: int
    code: str
    detail: str
    remedy: str
    field: str | None = None
    limit: str | None = None
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    meaning: str = MEANINGS[Invalid]
    """The same without its facts, for pages in another language than the detail's."""

    @property
    def title(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase

    def told(self, request_id: str) -> dict[str, Any]:
        """The members of the JSON object that RFC 9457 describes, and ours."""
        members = {
            "type": f"{_TYPES}{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "field": self.field,
            "limit": self.limit,
            "remedy": self.remedy,
            "request_id": request_id,
            "facts": jsonable_encoder(dict(self.facts)) or None,
        }
        return {name: value for name, value in members.items() if value is not None}


def add_handlers(app: FastAPI) -> None:
    """Have every refusal of this application's routes answered as here; `Failures` answers the rest."""
    for kind in (Error, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def problem_of(error: Exception) -> Problem:
    """What is told of this error."""
    match error:
        case Broken():
            return Problem(error.http_status, error.code, meaning(error), _BROKEN_REMEDY)
        case Error():
            return Problem(
                error.http_status,
                error.code,
                error.message,
                error.remedy,
                error.field,
                error.limit,
                error.facts,
                _headers(error),
                meaning(error),
            )
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            return _http(error)
        case _:
            return Problem(500, "UNEXPECTED", UNEXPECTED, _UNEXPECTED_REMEDY)


class Failures:
    """Answers what nothing else has: the framework would, but past the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer for whatever fails at it before it was answered."""
        started = False

        async def send_noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noticed)
        except ClientDisconnect:
            pass  # whoever asked is gone, and nobody is there to be answered
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            response = await answer(Request(scope, receive), error)
            await response(scope, receive, send)


async def answer(request: Request, error: Exception) -> Response:
    """What is answered to a request that met this error."""
    problem, request_id = problem_of(error), request.state.request_id
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request %s failed", request_id, exc_info=error)
    if path_of(request).startswith("/api/"):
        return JSONResponse(problem.told(request_id), problem.status, dict(problem.headers), media_type=MEDIA_TYPE)
    return _page(request, problem)


def _page(request: Request, problem: Problem) -> Response:
    """The problem as a page; whoever is not known is asked to log in, and goes on where they wanted to go."""
    who, form = getattr(request.state, "who", None), form_page(request)
    back = here(request) if request.method in SAFE else form
    if problem.status == HTTPStatus.UNAUTHORIZED and back is not None:
        return render(request, "login.html", title="Log in", status=problem.status, back=back, told="", name="")
    return render(
        request,
        "problem.html",
        title=problem.title,
        who=who,
        status=problem.status,
        headers=problem.headers,
        problem=problem,
        back=back,
        fields=sent_again(request) if "Retry-After" in problem.headers else [],
    )


def _headers(error: Error) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="testigo"'}
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.facts.get("retry_after_seconds", _RETRY_AFTER_SECONDS))}
    return {"Retry-After": str(_RETRY_AFTER_SECONDS)} if isinstance(error, Busy) else {}


def _invalid(error: RequestValidationError) -> Problem:
    """The first thing that is wrong, and how many there are: without what was sent, which may be secret."""
    found = error.errors()
    first = found[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    others = f" There are {len(found) - 1} further errors." if len(found) > 1 else ""
    told = {"missing": "It is needed, and missing", "extra_forbidden": "There is none of that name here"}
    detail = tidy(f"{told.get(first['type'], first['msg'])}.{others}", bytes_max=500)
    return Problem(422, Invalid.code, detail, Invalid.remedy, tidy(where, bytes_max=200) or None)


def _http(error: HTTPException) -> Problem:
    """What the framework refuses by itself."""
    phrase = HTTPStatus(error.status_code).phrase
    code, detail, remedy = HTTP_TOLD.get(error.status_code, ("REFUSED", f"{phrase}.", _CORRECT))
    return Problem(error.status_code, code, detail, remedy, headers=error.headers or {})
