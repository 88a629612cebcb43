"""The analyser server's door: HTTP on loopback or a Unix socket, for whoever knows the token.

GET    /v1/analysers                              what is installed
POST   /v1/runs                                   a request; the run that carries it out
GET    /v1/runs/{run}?wait=SECONDS                how far it is; the manifest once it is sealed
GET    /v1/runs/{run}/pages?cursor=CURSOR         a page
GET    /v1/runs/{run}/artifacts/{digest}          an artifact, or an envelope
POST   /v1/runs/{run}/ack                         request and result are published: delete it
DELETE /v1/runs/{run}                             cancel it and forget it
"""

from __future__ import annotations

import hmac
import logging
import math
import os
import re
import shutil
import signal
import socket
import socketserver
import stat
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

from testigo.errors import Broken, Error, Invalid, NotFound, Unauthenticated
from testigo.evidence.server.runs import Runs
from testigo.evidence.transport import wire
from testigo.evidence.transport.client import WAIT_SECONDS_MAX
from testigo.evidence.transport.request import REQUEST_BYTES_MAX, Request
from testigo.rules.identity import canonical

__all__ = ["Server"]

CONNECTIONS_MAX = 64
"""Connections that are served at a time; further ones are closed."""
IDLE_SECONDS = 60.0
LOOPBACK = "127.0.0.1"
_DIGITS_MAX = len(str(REQUEST_BYTES_MAX))

_log = logging.getLogger("testigo.analyser")
_RUN = re.compile(r"/v1/runs/([^/]+)(?:/(pages|ack|artifacts/([^/]+)))?")


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens at once; `serve_forever` answers. `address` is what a client is given."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(self, runs: Runs, token: str, *, port: int = 0, path: Path | None = None) -> None:
        """Listen at a port of loopback, 0 for a free one, or at a Unix socket. Raises `Broken` if that cannot be."""
        self.runs = runs
        self.token = token
        self._path = path
        self._bound = False
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        if path is not None:
            self.address_family = socket.AF_UNIX
        where: Any = (LOOPBACK, port) if path is None else str(path)
        try:
            super().__init__(where, _Door)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Broken(
                f"Nobody can listen at {where}: {reason}.", field="port" if path is None else "socket"
            ) from error

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT` or `unix:PATH`."""
        return f"http://{LOOPBACK}:{self.server_address[1]}" if self._path is None else f"unix:{self._path.absolute()}"

    def serve_until_told(self) -> None:
        """Answer until SIGTERM or SIGINT; for the main thread of a process."""
        told = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: told.set())
        threading.Thread(target=self.serve_forever, name="testigo-door", daemon=True).start()
        told.wait()
        self.shutdown()

    def server_bind(self) -> None:
        """A Unix socket is for its owner alone; one that a server left behind makes way."""
        if self._path is None:
            super().server_bind()
            return
        _remove_left(self._path)
        before = os.umask(0o177)
        try:
            self.socket.bind(str(self._path))
            self._bound = True
        finally:
            os.umask(before)

    def server_close(self) -> None:
        """Listen no more."""
        super().server_close()
        if self._path is not None and self._bound:
            self._path.unlink(missing_ok=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, if there are not too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # there is no thread to be had
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve it to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of ours; anything else is one that nobody expected."""
        if not isinstance(sys.exc_info()[1], OSError):
            _log.exception("An answer failed.")


class _Door(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "testigo-analyser"
    sys_version = ""
    timeout = IDLE_SECONDS

    def address_string(self) -> str:
        """Who asks: on a Unix socket nobody has an address."""
        return "local"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: requests name files."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        try:
            content = self._content()
            self._must_be_known()
            self._route(content)
        except Error as error:
            self._refuse(error)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _route(self, content: bytes) -> None:
        where = urlsplit(self.path)
        asked = {name: values[-1] for name, values in parse_qs(where.query).items()}
        runs = self.server.runs
        match (self.command, where.path):
            case ("GET", "/v1/analysers"):
                return self._send(200, canonical(runs.analysers()))
            case ("POST", "/v1/runs"):
                return self._send(200, canonical(runs.ask(Request.from_json(_parsed(content)))))
        if found := _RUN.fullmatch(where.path):
            run, part, digest = unquote(found[1]), (found[2] or "").partition("/")[0], unquote(found[3] or "")
            match (self.command, part):
                case ("GET", ""):
                    wait_seconds = _seconds(asked.get("wait", "0"))
                    return self._send(200, canonical(runs.look(run, wait_seconds=wait_seconds)))
                case ("DELETE", ""):
                    runs.cancel(run)
                    return self._send(204, b"")
                case ("GET", "pages"):
                    return self._send(200, runs.page(run, asked.get("cursor", "")))
                case ("GET", "artifacts"):
                    return self._stream(*runs.artifact(run, digest))
                case ("POST", "ack"):
                    said = _parsed(content)
                    runs.acknowledge(run, said.get("request"), said.get("result"))
                    return self._send(204, b"")
        raise NotFound("There is nothing here.", field="path", remedy="See the guide on the analyser server.")

    def _must_be_known(self) -> None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").encode(errors="replace")
        if not hmac.compare_digest(given, self.server.token.encode()):
            raise Unauthenticated("The token is not this server's.", remedy="Use the token that the server was given.")

    def _content(self) -> bytes:
        """The body, read whole before anything is answered, so that the next request begins behind it."""
        said = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not said.isascii() or not said.isdigit():
            self.close_connection = True
            raise Invalid("The length of the body must be told.", field="Content-Length")
        if len(said) > _DIGITS_MAX or int(said) > REQUEST_BYTES_MAX:
            self.close_connection = True
            raise Invalid("The body is too large.", field="body", limit=f"{REQUEST_BYTES_MAX} bytes")
        return self.rfile.read(int(said))

    def _refuse(self, error: Error) -> None:
        told = {
            "code": error.code,
            "message": error.message,
            "field": error.field,
            "limit": error.limit,
            "remedy": error.remedy,
        }
        self._send(error.http_status, canonical({"error": told}))

    def _send(self, status: int, body: bytes) -> None:
        self._head(status, "application/json", len(body))
        self.wfile.write(body)

    def _stream(self, file: BinaryIO, size: int) -> None:
        with file:
            self._head(200, "application/octet-stream", size)
            shutil.copyfileobj(file, self.wfile)

    def _head(self, status: int, media_type: str, size: int) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _parsed(content: bytes) -> dict[str, Any]:
    return wire.parsed(content, lambda check, field, why: Invalid(why, field=field, check=check))


def _seconds(said: str) -> float:
    try:
        seconds = float(said)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise Invalid("a number of seconds is needed", field="wait", limit=f"0 to {WAIT_SECONDS_MAX:g}")
    return seconds


def _remove_left(path: Path) -> None:
    """Remove a socket at which nobody listens; anything else stays, and binding says what is wrong."""
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) != 0:
                    path.unlink()
