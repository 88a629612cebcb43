"""The headers of every answer, whatever it is: pages, JSON, files, refusals and failures (panel.md).

The policy allows what the panel needs and nothing else. `same-origin` as the referrer's policy is the
strictest with which a browser names the origin of our own forms: with `no-referrer` it writes `null`.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from testigo.web.security.place import is_secure

__all__ = ["POLICY", "Headers"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_ALWAYS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HSTS_SECONDS = 365 * 86_400


class Headers:
    """Adds them. What says of itself how long it may be kept, a file of this release, is left that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with these headers."""

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_ALWAYS)
                headers.setdefault("cache-control", "no-store")
                if is_secure(Request(scope)):
                    headers["strict-transport-security"] = f"max-age={_HSTS_SECONDS}"
            await send(message)

        await self._app(scope, receive, send_with if scope["type"] == "http" else send)
