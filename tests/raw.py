"""Bytes as they are, for servers that may hang up on whoever sends them."""

from __future__ import annotations

import socket
from contextlib import suppress


def answered(line: socket.socket, sent: bytes) -> bytes:
    """What a server says to these bytes until it hangs up, which it may do before all is sent or read."""
    with suppress(OSError):
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
    answer = bytearray()
    with suppress(ConnectionResetError):
        while piece := line.recv(65_536):
            answer += piece
    return bytes(answer)
