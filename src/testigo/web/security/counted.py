"""Counts what was answered and how long it took, for `metrics`: of this process, since its start."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from testigo.web.security.place import path_of

__all__ = ["Answers", "Counted"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Answers:
    """The counters. Addresses are no labels: whoever asks could make as many as they like."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "testigo_http_answers", "Requests that were answered", ["door", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "testigo_http_seconds", "Seconds until an answer began", ["door"], buckets=_SECONDS, registry=self.registry
        )

    def answered(self, door: str, status: int, seconds: float) -> None:
        """An answer began."""
        self._answers.labels(door, str(status)).inc()
        self._seconds.labels(door).observe(seconds)


class Counted:
    """Counts each request when its answer begins."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                door = "api" if path_of(Request(scope)).startswith("/api/") else "panel"
                self._answers.answered(door, message["status"], time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, send_counted)
