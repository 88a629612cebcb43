"""The analyser server as its clients see it: what they may ask, in bounded answers, with its refusals as our errors."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO, Protocol
from urllib.parse import quote, urlsplit

from testigo import errors
from testigo.errors import Busy, Error, Invalid
from testigo.evidence.transport import wire
from testigo.evidence.transport.manifest import ARTIFACT_BYTES_MAX, MANIFEST_BYTES_MAX, Manifest, refused
from testigo.evidence.transport.request import Request
from testigo.rules.identity import canonical
from testigo.settings import EVIDENCE

__all__ = ["WAIT_SECONDS_MAX", "AnalyserClient", "Named", "RunState", "Told"]

WAIT_SECONDS_MAX = 30.0
"""How long one answer about a run may be waited for."""
ANSWER_BYTES_MAX = MANIFEST_BYTES_MAX + 64 * 1024
CHUNK_BYTES = 256 * 1024

_TOLD = frozenset({"v", "run", "request", "state", "seconds", "manifest"})


class RunState(StrEnum):
    """How far a run is. One that is acknowledged, cancelled or expired is not there any more."""

    WAITING = "waiting"
    RUNNING = "running"
    SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class Told:
    """What the server says of a run; `seconds` since it was asked for, `manifest` once it is sealed."""

    run: str
    request: str
    state: RunState
    seconds: float
    manifest: Manifest | None


class Named(Protocol):
    """Exactly one result, as its manifest names it, or as the database does once it is published."""

    @property
    def run(self) -> str:
        """The run that made it."""

    @property
    def request(self) -> str:
        """The digest of what was asked."""

    @property
    def result(self) -> str:
        """The digest of what was found."""


class AnalyserClient:
    """One connection to the analyser server at `address`, `http://127.0.0.1:PORT` or `unix:PATH`; for one thread.

    Every method raises `Busy` if the server does not answer, `Unauthenticated` for a token that is not its own,
    and `NotFound` for a run that it does not know, or no more.
    """

    def __init__(self, address: str, token: str, *, timeout_seconds: float = 60.0) -> None:
        self._address = address
        self._token = token
        self._timeout_seconds = timeout_seconds
        self._open: http.client.HTTPConnection | None = None

    def __enter__(self) -> AnalyserClient:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; the next question opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def analysers(self) -> dict[str, str | None]:
        """The version of each analyser that the server knows, None for one that is not installed there."""
        found = _object(self._asked("GET", "/v1/analysers"))
        return {str(name): None if version is None else str(version) for name, version in found.items()}

    def ask(self, request: Request) -> Told:
        """Have the request carried out; if it is already, or a result of it is kept, that run is told.

        Raises `StoragePressure` if there is no room for another result.
        """
        return self._told(self._asked("POST", "/v1/runs", request.to_json()), request.digest)

    def look(self, run: str, *, wait_seconds: float = 0.0) -> Told:
        """How far a run is; with `wait_seconds` (at most 30) the answer waits for the result so long."""
        return self._told(self._asked("GET", f"/v1/runs/{quote(run)}?wait={min(wait_seconds, WAIT_SECONDS_MAX):.3f}"))

    def result(self, request: Request, *, within_seconds: float) -> Manifest:
        """Ask, and wait for the manifest. Raises `Busy` if there is none after so many seconds; the run goes on."""
        until = time.monotonic() + within_seconds
        told = self.ask(request)
        while told.manifest is None:
            left = until - time.monotonic()
            if left <= 0:
                raise Busy(f"The run {told.run} has not ended within {within_seconds:g} seconds.")
            told = self.look(told.run, wait_seconds=left)
        told.manifest.check_request(request)
        return told.manifest

    def page(self, run: str, cursor: str) -> bytes:
        """The page that the cursor opens, as it was sent. Raises `CursorInvalid` for a cursor of another result."""
        path = f"/v1/runs/{quote(run)}/pages?cursor={quote(cursor)}"
        return self._asked("GET", path, bytes_max=EVIDENCE.page_bytes_max + 1)

    def fetch(self, run: str, digest: str, into: BinaryIO) -> int:
        """Copy an artifact, or an envelope, into a file, at most 64 MiB; how many bytes it took. Nothing is checked."""
        size = 0
        with self._answer("GET", f"/v1/runs/{quote(run)}/artifacts/{quote(digest)}") as answer:
            while size <= ARTIFACT_BYTES_MAX and (chunk := answer.read(CHUNK_BYTES)):
                size += len(chunk)
                into.write(chunk)
            if answer.length:
                self.close()  # what is left of it is not wanted
        return size

    def acknowledge(self, manifest: Named) -> None:
        """Say that exactly this result is published, so that the server may delete it (spec D-09)."""
        bound = {"request": manifest.request, "result": manifest.result}
        self._asked("POST", f"/v1/runs/{quote(manifest.run)}/ack", bound)

    def cancel(self, run: str) -> None:
        """End a run, whatever it does, and forget it and its result."""
        self._asked("DELETE", f"/v1/runs/{quote(run)}")

    def _told(self, body: bytes, request: str | None = None) -> Told:
        found = wire.stated(body, refused)
        wire.members(found, _TOLD, refused)
        if found["state"] not in set(RunState):
            raise refused("value", "state", f"one of {', '.join(RunState)} is needed")
        manifest = None if found["manifest"] is None else Manifest.from_json(found["manifest"])
        told = Told(
            run=wire.text(found["run"], "run", refused, pattern=wire.RUN),
            request=wire.text(found["request"], "request", refused, pattern=wire.DIGEST),
            state=RunState(found["state"]),
            seconds=float(wire.positive(found["seconds"], "seconds", refused)),
            manifest=manifest,
        )
        if request is not None and told.request != request:
            raise refused("request", "request", "it answers another request")
        if (manifest is None) != (told.state is not RunState.SEALED):
            raise refused("value", "manifest", "there is one exactly if the result is sealed")
        if manifest is not None and (manifest.run, manifest.request) != (told.run, told.request):
            raise refused("run", "manifest", "the manifest is another run's")
        return told

    def _asked(
        self, method: str, path: str, content: dict[str, Any] | None = None, *, bytes_max: int = ANSWER_BYTES_MAX
    ) -> bytes:
        with self._answer(method, path, content) as answer:
            body = answer.read(bytes_max + 1)
            if len(body) > bytes_max:
                self.close()
                raise Invalid("The server's answer is too large.", field="body", limit=f"{bytes_max} bytes")
            return body

    @contextmanager
    def _answer(
        self, method: str, path: str, content: dict[str, Any] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, if it is none of refusal; what is not read of it closes the connection."""
        try:
            answer = self._sent(method, path, None if content is None else canonical(content))
            if answer.status >= 300:
                raise _refusal(answer.status, answer.read(ANSWER_BYTES_MAX))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Busy(
                f"The analyser server at {self._address} does not answer: {type(error).__name__}.",
                remedy="See that it runs (`testigo analyser`), and send the same again.",
            ) from error

    def _sent(self, method: str, path: str, body: bytes | None) -> http.client.HTTPResponse:
        """The head of the answer. A connection that the server has closed meanwhile is opened once more."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        kept = self._open
        for connection in (kept, None):
            if connection is None:
                connection = self._open = _connection(self._address, self._timeout_seconds)
            elif kept is None:
                continue
            try:
                connection.request(method, path, body, headers)
                return connection.getresponse()
            except (ConnectionError, http.client.HTTPException):
                connection.close()
                if connection is not kept:
                    raise
        raise AssertionError


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(address: str, timeout_seconds: float) -> http.client.HTTPConnection:
    if address.startswith("unix:"):
        return _UnixConnection(address.removeprefix("unix:"), timeout=timeout_seconds)
    where = urlsplit(address)
    if where.scheme != "http" or not where.hostname or not where.port:
        raise Invalid(
            "The analyser server's address is not written as it must be.",
            field="address",
            limit="http://HOST:PORT or unix:PATH",
        )
    return http.client.HTTPConnection(where.hostname, where.port, timeout=timeout_seconds)


def _object(body: bytes) -> dict[str, Any]:
    return wire.parsed(body, refused)


def _refusal(status: int, body: bytes) -> Error:
    """The error that the server refused with, if it is one of ours; else that it cannot be understood."""
    said: Any = None
    with suppress(ValueError, RecursionError):
        said = json.loads(body)
    told = said.get("error") if isinstance(said, dict) else None
    if isinstance(told, dict) and (kind := _KINDS.get(str(told.get("code")))):
        more = {name: str(told[name]) for name in ("field", "limit", "remedy") if told.get(name)}
        return kind(str(told.get("message")), **more)
    return Busy(f"The analyser server answered with status {status}, and said nothing that is understood.")


_KINDS: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        errors.Invalid,
        errors.CursorInvalid,
        errors.Conflict,
        errors.NotFound,
        errors.Unauthenticated,
        errors.Busy,
        errors.StoragePressure,
        errors.TooManyRequests,
    )
}
