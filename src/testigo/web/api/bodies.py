"""The body of a request as a value of its shape.

A large one is read beside the event loop: it takes a second or more, in which everybody else would wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError

from testigo.errors import Invalid, PayloadInvalid
from testigo.rules.text import tidy
from testigo.web.api.exact import read
from testigo.web.api.shapes import Shape

__all__ = ["body", "body_if_any"]

S = TypeVar("S", bound=Shape)

LARGE_BYTES = 16 * 1024
"""A larger body is not read on the loop."""


def body(shape: type[S]) -> Callable[[Request], Awaitable[S]]:
    """A dependency: the request's body, which must be JSON of this shape.

    Raises `Invalid` naming the member at fault, and `PayloadInvalid` for what is no JSON.
    """

    async def found(request: Request) -> S:
        return await _shaped(shape, await request.body(), request.headers.get("content-type", ""))

    return found


def body_if_any(shape: type[S]) -> Callable[[Request], Awaitable[S]]:
    """As `body`; a request without one is as if it had sent an empty object."""

    async def found(request: Request) -> S:
        sent = await request.body()
        if not sent:
            return _checked(shape, {})
        return await _shaped(shape, sent, request.headers.get("content-type", ""))

    return found


async def _shaped(shape: type[S], sent: bytes, content_type: str) -> S:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise PayloadInvalid(
            f"the body's type is {tidy(content_type, bytes_max=80)!r}",
            field="Content-Type",
            limit="application/json",
            remedy="Send JSON, with the header Content-Type: application/json.",
        )
    if len(sent) > LARGE_BYTES:
        return await asyncio.to_thread(_read, shape, sent)
    return _read(shape, sent)


def _read(shape: type[S], sent: bytes) -> S:
    return _checked(shape, read(sent))


def _checked(shape: type[S], value: object) -> S:
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_input=False)[0]
        raise Invalid(_sentence(first["msg"]), field=_path(first["loc"])) from None


def _path(where: Sequence[object]) -> str:
    """A place in a body as its refusals name it: jobs[3].tags[0]."""
    path = ""
    for part in where:
        path += f"[{part}]" if isinstance(part, int) else f".{tidy(part, bytes_max=80)}"
    return path.removeprefix(".") or "body"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
