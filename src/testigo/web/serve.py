"""The process that serves: one socket, one loop, and an end that waits for nobody's open stream."""

from __future__ import annotations

import logging
import math
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from testigo.settings import Web
from testigo.web.hurried import hurried

__all__ = ["Server", "listening"]

_BACKLOG = 2048
_HEAD_BYTES_MAX = 64 * 1024


class Server(uvicorn.Server):
    """Serves the application until it is told to stop; then it ends the streams, and gives requests a moment.

    A server that waits for open streams never stops: a browser's tab holds one for as long as it is open.
    """

    def __init__(self, app: FastAPI) -> None:
        settings: Web = app.state.settings
        self._app = app
        logging.getLogger("uvicorn.access").disabled = True  # addresses hold searches, and a login link its secret
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=hurried(settings.request_seconds),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=settings.trusted_proxies,
                timeout_graceful_shutdown=math.ceil(settings.stop_seconds),
                h11_max_incomplete_event_size=_HEAD_BYTES_MAX,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the rest."""
        self._app.state.hub.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at SIGINT and SIGTERM, and return: whoever called goes on, and takes down what is theirs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self.handle_exit) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is one that is free. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)
