"""Hangs up on whoever does not bring their request to its end: a connection costs the server as much as a caller.

A client that sends a byte now and then keeps its connection for as long as it likes, and a thousand of
those leave none for others. Streams and slow answers are no matter of this: there it is the server who speaks.

Nor does an answer wait: its head and its body are written apart, and without TCP_NODELAY the second is kept back
until the first is acknowledged, which clients delay by 40 ms.
"""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["hurried"]

_CLIENT_SPEAKS = frozenset({h11.IDLE, h11.SEND_BODY})


def hurried(request_seconds: float) -> type[H11Protocol]:
    """The protocol of a server whose clients have so long to bring a request to its end.

    The first request of a connection is waited for as long; between two requests holds what holds without this.
    """

    class Hurried(H11Protocol):
        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._calm()

        def _look(self) -> None:
            if self.transport.is_closing() or self.conn.their_state not in _CLIENT_SPEAKS:
                self._calm()
            elif self._patience is None:
                self._patience = self.loop.call_later(request_seconds, self.transport.close)

        def _calm(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

    return Hurried
