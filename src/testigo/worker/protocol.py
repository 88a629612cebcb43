"""What a keeper and its runners say to each other (spec P-20, P-22; decision 4 of the architecture).

A frame is four bytes, the length of what follows as a big-endian number, and a JSON array whose first
member names the message. One frame carries many runs, and one carries many ends.

    keeper → runner
    ["run", [[ticket, kind, queue, job_id, epoch, failures, losses, timeout_seconds, finish_by,
              payload, checkpoint, trace], …]]
                                   to a publisher each with a last member, [lease_id, session_id]
    ["credentials", url, schema, {variable: value}]
                                   to a publisher, before all else: they stand in no environment and no argument
    ["stop", ticket, why]          cancelled, timeout, lease_lost or drained
    ["drain"]                      handlers learn that they should come to an end
    ["answer", call, value, error] error is null or [code, message, field, remedy]
    ["retire"]                     finish what runs, then exit

    runner → keeper
    ["hello", {pid, app, client, url, schema, kinds: {name: {queue, isolation}}, deployment}]
    ["broken", message]            the application cannot be loaded
    ["ended", [[ticket, end, started_at, run_seconds, peak_memory_bytes], …]]
    ["call", call, ticket, "save", [number, checkpoint]]
    ["call", call, ticket, "submit", [action_id, created_at, [new_job, …]]]
    ["call", call, ticket, "connected", [[[pid, started], …]]]
                                   of a publisher: the server's processes behind its connections
    ["notes", [[ticket, "progress", done, total, note] | [ticket, "log", at, level, text], …]]
    ["resting"]                    the last word of a runner that retires

A ticket is a whole number that names a run for the life of the keeper; a call one that names a question
for the life of the runner. Documents travel as their exact text. `wire` writes and reads the ends, the
new jobs and the errors. Either side treats what it reads as it treats any input: a frame that breaks a
bound ends the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from testigo.errors import PayloadTooLarge, ProtocolBroken

__all__ = ["FRAME_BYTES_MAX", "Frames", "Run", "encode_batch", "encode_frame"]

FRAME_BYTES_MAX = 64 * 1024 * 1024
"""What follows a frame's length, at most."""

_LENGTH_BYTES = 4
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))


class Run(NamedTuple):
    """One run as a keeper asks for it: a row of the message `run`, in its order.

    `finish_by` is ISO 8601 text, `payload` and `checkpoint` the exact text of documents, `trace` a
    traceparent as W3C defines it. `owner` is the lease's id and that of the session that holds it, where the run
    is a publisher's.
    """

    ticket: int
    kind: str
    queue: str
    job_id: str
    epoch: int
    failures: int
    losses: int
    timeout_seconds: float
    finish_by: str | None
    payload: str
    checkpoint: str | None
    trace: str | None
    owner: tuple[str, str] | None = None


def encode_frame(message: Sequence[object]) -> bytes:
    """The frame of one message. Raises `PayloadTooLarge` above 64 MiB."""
    body = _ENCODER.encode(message).encode()
    if len(body) > FRAME_BYTES_MAX:
        raise PayloadTooLarge(
            f"the message {message[0]!r} takes {len(body)} bytes",
            field="message",
            limit=f"{FRAME_BYTES_MAX} bytes",
            remedy="Send less at a time, or store large bytes as blobs.",
        )
    return len(body).to_bytes(_LENGTH_BYTES) + body


def encode_batch(name: str, rows: Sequence[object]) -> bytes:
    """The frames of one message of many rows: one frame, or as many as its size asks for.

    Raises `PayloadTooLarge` for a single row above 64 MiB.
    """
    try:
        return encode_frame([name, rows])
    except PayloadTooLarge:
        if len(rows) < 2:
            raise
    half = len(rows) // 2
    return encode_batch(name, rows[:half]) + encode_batch(name, rows[half:])


class Frames:
    """The messages in a stream of bytes that arrives in pieces."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> list[list[Any]]:
        """The messages that this piece completes, in order; what is left waits for the next piece.

        Raises `ProtocolBroken` for a length above 64 MiB, and for a body that is not a JSON array that
        begins with a name. Nothing can be read after that.
        """
        held = self._bytes
        held += piece
        messages: list[list[Any]] = []
        at = 0
        while len(held) - at >= _LENGTH_BYTES:
            length = int.from_bytes(held[at : at + _LENGTH_BYTES])
            if length > FRAME_BYTES_MAX:
                raise ProtocolBroken(
                    f"a frame of {length} bytes is announced", field="length", limit=f"{FRAME_BYTES_MAX} bytes"
                )
            end = at + _LENGTH_BYTES + length
            if len(held) < end:
                break
            messages.append(_message(held[at + _LENGTH_BYTES : end]))
            at = end
        if at:
            del held[:at]
        return messages


def _message(body: bytearray) -> list[Any]:
    try:
        message = json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolBroken(f"a frame holds no JSON: {type(error).__name__}", field="body") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ProtocolBroken("a message is an array that begins with its name", field="body")
    return message


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)
