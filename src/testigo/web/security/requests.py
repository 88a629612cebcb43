"""What is settled of a request before any route sees it: its name, its place and its size."""

from __future__ import annotations

import re

from starlette.datastructures import Headers as Given
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from testigo.authority.actions import new_id
from testigo.errors import PayloadTooLarge
from testigo.settings import Web
from testigo.web.security.place import prefix_in

__all__ = ["REQUEST_ID_HEADER", "Named", "Sized"]

REQUEST_ID_HEADER = "x-request-id"
_FIT = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Named:
    """Gives a request its id, under which log, audit and answer speak of it; a proxy's is kept if it is a name.

    And it says what stands before the paths of our routes, whether or not a proxy has taken that away.
    """

    def __init__(self, app: ASGIApp, settings: Web) -> None:
        self._app = app
        self._prefix = prefix_in(settings.public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on under its name."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Given(scope=scope).get(REQUEST_ID_HEADER, "")
        name = given if _FIT.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = name
        scope["root_path"] = self._prefix

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = name
            await send(message)

        await self._app(scope, receive, send_named)


class Sized:
    """Lets no more of a body in than the limit, however it is sent; raises `PayloadTooLarge` for one that has more.

    Whoever reads the body meets that error first, and may make another of it: so what it then answers is dropped.
    """

    def __init__(self, app: ASGIApp, settings: Web) -> None:
        self._app = app
        self._limit = settings.body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its body as it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Given(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limit:
            raise self._too_large()
        left, started = self._limit, False

        async def receive_counted() -> Message:
            nonlocal left
            message = await receive()
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            return message

        async def send_unless_too_large(message: Message) -> None:
            nonlocal started
            if left >= 0 or started:
                started = True
                await send(message)

        await self._app(scope, receive_counted, send_unless_too_large)
        if left < 0 and not started:
            raise self._too_large()

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            "The request's body is too large.",
            field="body",
            limit=f"{self._limit} bytes",
            remedy="Send it in several requests.",
        )
