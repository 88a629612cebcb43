"""The door of the analyser server: closed without the token, bounded, and deaf to what it does not know."""

from __future__ import annotations

import http.client
import json
import socket
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import Broken, Busy, Unauthenticated
from testigo.evidence.server.door import CONNECTIONS_MAX, LOOPBACK, Server
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.request import REQUEST_BYTES_MAX
from tests.evidence.server.serving import TOKEN, Served, program, report, served
from tests.raw import answered

RUN = "/v1/runs/0190b5a2-0000-7000-8000-000000000001"


def _raw(it: Served, sent: bytes) -> bytes:
    """What a connection answers until it is closed."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(90)
        connection.connect(it.server.address.removeprefix("unix:"))
        return answered(connection, sent)


def _asked(it: Served, method: str, path: str, body: bytes = b"", token: str | None = TOKEN) -> tuple[int, Any]:
    said = f"Authorization: Bearer {token}\r\n" if token is not None else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{said}Content-Length: {len(body)}\r\n\r\n"
    head_of_answer, _, answer = _raw(it, head.encode() + body).partition(b"\r\n\r\n")
    return int(head_of_answer.split()[1]), json.loads(answer) if answer else None


ROUTES = [
    ("GET", "/v1/analysers"),
    ("POST", "/v1/runs"),
    ("GET", RUN),
    ("DELETE", RUN),
    ("GET", f"{RUN}/pages?cursor=1"),
    ("GET", f"{RUN}/artifacts/sha256:0"),
    ("POST", f"{RUN}/ack"),
    ("GET", "/"),
]


def test_nobody_is_answered_without_the_token(tmp_path: Path) -> None:
    """On no route; what is refused says nothing of what there is."""
    with served(tmp_path) as it:
        for method, path in ROUTES:
            for token in (None, "", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
                status, said = _asked(it, method, path, token=token)
                assert (status, said["error"]["code"]) == (401, "UNAUTHENTICATED")
                assert TOKEN not in json.dumps(said)
        with AnalyserClient(it.server.address, "another token altogether") as stranger, pytest.raises(Unauthenticated):
            stranger.analysers()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "/v1/runs", b"", 422, "body"),
        ("POST", "/v1/runs", b"[]", 422, "body"),
        ("POST", "/v1/runs", b'{"v":1}', 422, "analyser"),
        ("POST", "/v1/runs", b"[" * 100_000, 422, "body"),
        ("GET", f"{RUN}?wait=x", b"", 422, "wait"),
        ("GET", f"{RUN}?wait=nan", b"", 422, "wait"),
        ("GET", f"{RUN}?wait=1e9", b"", 422, "wait"),
        ("GET", RUN, b"", 404, "run"),
        ("GET", "/v1/runs/..%2f..%2fetc", b"", 404, "run"),
        ("GET", f"{RUN}/artifacts/..%2f..%2forder", b"", 404, "run"),
        ("GET", f"{RUN}/order", b"", 404, "path"),
        ("POST", RUN, b"", 404, "path"),
        ("DELETE", "/v1/analysers", b"", 404, "path"),
    ],
)
def test_what_is_not_understood_is_refused_by_field(
    tmp_path: Path, method: str, path: str, body: bytes, status: int, field: str
) -> None:
    """With the status of its error, and one form for all."""
    with served(tmp_path) as it:
        found, said = _asked(it, method, path, body)
        assert (found, said["error"]["field"]) == (status, field)


def test_artifacts_are_named_by_their_digests_alone(tmp_path: Path) -> None:
    """Of a result that is there: its order and its findings are none."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        run = it.result("a.py").run
        for name in ("..%2forder", "order", "sha256:..%2forder", "%00"):
            assert _asked(it, "GET", f"/v1/runs/{run}/artifacts/{name}")[0] == 404


@pytest.mark.parametrize(
    "head",
    [
        f"Content-Length: {REQUEST_BYTES_MAX + 1}",
        "Content-Length: -1",
        "Content-Length: ²",
        "Content-Length: 99999999999999999999999",
        "Content-Length: 00000000000099999999999",
        "Transfer-Encoding: chunked",
    ],
)
def test_a_body_without_bounds_is_not_read(tmp_path: Path, head: str) -> None:
    """The connection is closed: nobody knows where the next request begins."""
    with served(tmp_path) as it:
        sent = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{head}\r\n\r\n"
        answer = _raw(it, sent.encode())
        assert answer.startswith(b"HTTP/1.1 422 ")
        assert b"Connection: close" in answer


def test_nonsense_and_silence_do_not_stop_it(tmp_path: Path) -> None:
    """Others are answered as before."""
    with served(tmp_path) as it:
        _raw(it, b"\x16\x03\x01\x02\x00 nonsense\r\n\r\n")
        _raw(it, b"")
        _raw(it, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n")
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(it.server.address.removeprefix("unix:"))
            assert "ruff" in it.client.analysers()


def test_a_unix_socket_is_for_its_owner_and_one_that_was_left_makes_way(tmp_path: Path) -> None:
    """Only a socket at which nobody listens: neither a server that lives, nor a file that is something else."""
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "s"))
    left.close()
    (tmp_path / "file").write_text("precious")
    with served(tmp_path) as it:
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        for path in (tmp_path / "s", tmp_path / "file", tmp_path / "gone" / "s", tmp_path / ("x" * 200)):
            with pytest.raises(Broken) as refusal:
                Server(it.server.runs, TOKEN, path=path)
            assert refusal.value.field == "socket"
        assert (tmp_path / "file").read_text() == "precious"
        assert "ruff" in it.client.analysers()
    assert not (tmp_path / "s").exists()


def test_on_a_port_it_listens_to_this_machine_alone(tmp_path: Path) -> None:
    """And a port that is taken is refused."""
    with served(tmp_path) as it, Server(it.server.runs, TOKEN) as other:
        assert other.server_address[0] == LOOPBACK == "127.0.0.1"
        with pytest.raises(Broken) as refusal:
            Server(it.server.runs, TOKEN, port=int(other.server_address[1]))
        assert refusal.value.field == "port"


def test_a_server_that_does_not_answer_is_busy(tmp_path: Path) -> None:
    """It may be asked again (spec D-11); so may one that answers what is no answer."""
    with AnalyserClient(f"unix:{tmp_path / 'nobody'}", TOKEN) as client, pytest.raises(Busy):
        client.analysers()
    with served(tmp_path) as it:
        it.client.analysers()
        kept = it.client._open
        assert isinstance(kept, http.client.HTTPConnection)
        kept.sock.shutdown(socket.SHUT_RDWR)
        assert "ruff" in it.client.analysers(), "a connection that was closed meanwhile is opened again"
    assert not (tmp_path / "s").exists()


def test_a_connection_for_which_there_is_no_thread_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that happens, those that come later are served."""

    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with served(tmp_path) as it:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none)
            for _ in range(CONNECTIONS_MAX + 1):
                with pytest.raises(RuntimeError):
                    it.server.process_request(None, None)
        assert it.client.analysers()["ruff"]
