"""What every request and every answer passes, whichever route it is for."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from testigo.access.roles import Role
from testigo.errors import TooManyRequests
from testigo.web.hurried import hurried
from testigo.web.security.headers import POLICY
from testigo.web.security.rate import Rate
from testigo.web.serve import listening
from tests.raw import answered
from tests.web.conftest import PATIENT, Site, served
from tests.web.listening import listened
from tests.world import World

MARKUP = "<script>alert(1)</script>"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def raw(site: Site, request: bytes) -> bytes:
    """What the server answers to these bytes, to the end."""
    parts = urlsplit(site.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=90) as line:
        return answered(line, request)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/horizon"),
        ("GET", "/horizon/login"),
        ("GET", "/horizon/static/panel.css"),
        ("GET", "/horizon/nothing"),
        ("POST", "/horizon/login"),
        ("GET", "/api/v1/health/live"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/nothing"),
        ("PUT", "/api/v1/jobs"),
        ("GET", "/"),
    ],
)
def test_every_answer_has_the_policy(site: Site, method: str, path: str) -> None:
    """Pages, files, JSON, refusals and what is not there."""
    answer = site.anybody().request(method, path)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-request-id"]
    assert "server" not in answer.headers
    if "static" not in path:
        assert answer.headers["cache-control"] == "no-store"


def test_the_policy_allows_what_the_panel_needs_and_no_more() -> None:
    """Nothing inline, nothing from elsewhere, no frame."""
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def test_a_request_has_one_name_in_answer_and_problem(site: Site) -> None:
    """A proxy's name is kept; what is no name is not repeated."""
    anybody = site.anybody()
    kept = anybody.get("/api/v1/jobs", headers={"X-Request-Id": "proxy-7.a_B"})
    assert kept.headers["x-request-id"] == kept.json()["request_id"] == "proxy-7.a_B"
    for unfit in (MARKUP, "a" * 65, "a b", "", "é"):
        answer = anybody.get("/api/v1/jobs", headers=[(b"X-Request-Id", unfit.encode())])
        assert answer.headers["x-request-id"] == answer.json()["request_id"] != unfit


def test_a_problem_has_the_members_that_rfc_9457_describes(site: Site) -> None:
    """And ours: the code, and what to do."""
    answer = site.anybody().get("/api/v1/jobs")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    told = answer.json()
    assert (told["type"], told["title"], told["status"]) == (
        "urn:testigo:error:UNAUTHENTICATED",
        "Unauthorized",
        401,
    )
    assert told["code"] == "UNAUTHENTICATED"
    assert told["remedy"]


def test_a_body_beyond_the_limit_is_refused_unread(database_url: str, world: World) -> None:
    """Whether its size is declared or it is sent in chunks."""
    with served(database_url, world, replace(PATIENT, body_bytes_max=1_000)) as site:
        operator = site.program(Role.OPERATOR)
        chunks = (b"x" * 600 for _ in range(2))
        for body in (b"x" * 1_001, chunks):
            answer = operator.post("/api/v1/jobs", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413, answer.text
            assert answer.json()["limit"] == "1000 bytes"
        browser = site.as_(Role.OPERATOR)
        assert browser.post("/horizon/queues/pause", data={"name": "x" * 1_001}).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"kind": "\\ud800"}',
        b'{"kind": "k", "kind": "l", "queue": "q"}',
        b"[" * 100_000,
        b'{"queue": "q\\u0000", "kind": "k"}',
    ],
)
def test_a_hostile_body_is_refused_and_not_failed_at(site: Site, body: bytes) -> None:
    """It is the caller's fault, and told as theirs."""
    answer = site.program(Role.OPERATOR).post(
        "/api/v1/jobs", content=body, headers={"Content-Type": "application/json", "Idempotency-Key": "k"}
    )
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["code"]
    assert not site.world.query("SELECT 1 FROM testigo.job")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /api/v1/jobs HTTP/1.1\r\n\r\n",
        b"GET /%00%ff/../api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET //evil.example/horizon HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://evil.example/horizon HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /horizon HTTP/1.1\r\nHost: <script>\r\nCookie: \xff\xfe=\xff; testigo_login=\xe9\r\n\r\n",
        b"GET /horizon HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
        b"GET /horizon HTTP/1.1\r\nHost: x\r\nAccept-Language: " + b"en;q=0." * 5_000 + b"\r\n\r\n",
        b"GET /horizon HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_hostile_bytes_are_refused_and_not_failed_at(site: Site, request_bytes: bytes) -> None:
    """No header and no path makes the server fail, or serves what is not its own."""
    answer = raw(site, request_bytes)
    assert re.match(rb"HTTP/1\.1 [34]\d\d |\Z", answer), answer[:200]


def test_what_fails_tells_nothing_but_its_name(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the rest, under the same name."""

    async def fails() -> None:
        raise RuntimeError("secret-marker")

    site.app.state.door.read = lambda *_, **__: fails()
    operator = site.program(Role.OPERATOR)
    with caplog.at_level(logging.ERROR, "testigo.web"):
        answer = operator.get("/api/v1/jobs")
        page = site.as_(Role.OPERATOR).get("/horizon/jobs")
    assert answer.status_code == page.status_code == 500
    assert "secret-marker" not in answer.text + page.text
    assert answer.json()["code"] == "UNEXPECTED"
    assert answer.json()["request_id"] in caplog.text
    assert page.headers["x-request-id"] in page.text


def test_secrets_are_in_no_log(site: Site, database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither what somebody is known by, nor what was tried, nor the database's password."""
    with caplog.at_level(logging.DEBUG):
        secret = site.logged_in("admin")
        site.browser(secret).get("/horizon")
        program = site.program(Role.ADMIN)
        program.get("/api/v1/jobs")
        anybody = site.anybody()
        form = {"name": "admin", "password": "tried-password"}
        anybody.post("/horizon/login", data=form, headers={"Origin": site.url})
        anybody.get("/horizon/login", params={"link": "link-secret"})
    told = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("http"))
    for marker in (secret.text, program.headers["Authorization"][7:], "tried-password", "link-secret"):
        assert marker not in told


def test_one_caller_does_not_take_the_others_share(database_url: str, world: World) -> None:
    """Beyond the burst they are told to wait, and the others are answered."""
    with served(database_url, world, replace(PATIENT, requests_per_second=0.01, requests_burst=3)) as site:
        hasty, calm = site.program(Role.VIEWER), site.program(Role.VIEWER)
        answers = [hasty.get("/api/v1/who") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert calm.get("/api/v1/who").status_code == 200


def test_a_bucket_fills_again() -> None:
    """At its rate, and to its burst."""
    now = [0.0]
    rate = Rate(2.0, 2, clock=lambda: now[0])
    rate.count("a")
    rate.count("a")
    with pytest.raises(TooManyRequests) as refused:
        rate.count("a")
    assert refused.value.facts["retry_after_seconds"] == 1
    now[0] = 0.5
    rate.count("a")
    with pytest.raises(TooManyRequests):
        rate.count("a")
    now[0] = 100.0
    rate.count("a")
    rate.count("a")
    with pytest.raises(TooManyRequests):
        rate.count("a")


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /horizon/login HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        b"POST /horizon/login HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n" + FORM + b"Content-Length: 9\r\n\r\nname=",
    ],
)
def test_whoever_does_not_bring_a_request_to_its_end_is_hung_up_on(
    database_url: str, world: World, begun: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Though they send a byte now and then; and the log is not filled by it."""
    with served(database_url, world, replace(PATIENT, request_seconds=1.0)) as site:
        parts = urlsplit(site.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=90) as line:
            line.sendall(begun)
            line.settimeout(0.05)
            answer: bytes | None = None
            while answer is None:
                try:
                    answer = line.recv(1)
                except TimeoutError:
                    pass
                except ConnectionResetError:  # a byte of ours came after it had hung up
                    answer = b""
                if begun and answer is None:
                    with suppress(ConnectionError):
                        line.sendall(b"a" if begun.startswith(b"GET") else b"")
        assert answer == b""
        assert site.anybody().get("/horizon/login").status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_stream_and_a_connection_that_is_kept_go_on(database_url: str, world: World) -> None:
    """Only whoever has begun to ask is hurried."""
    with served(database_url, world, replace(PATIENT, request_seconds=1.0, ping_seconds=0.3)) as site:
        admin = site.as_(Role.ADMIN)
        with listened(admin, "/horizon/signals", params={"topics": "jobs"}) as stream:
            for _ in range(5):
                assert stream.next() is not None


def test_no_part_of_an_answer_is_held_back() -> None:
    """Head and body are two writes: the second does not wait until a client acknowledges the first."""
    config = uvicorn.Config(FastAPI(), http=hurried(5.0))
    config.load()

    async def option_of(accepted: socket.socket) -> int:
        def protocol() -> H11Protocol:
            return hurried(5.0)(config, ServerState(), {})

        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)
        option = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        transport.close()
        return option

    with listening("127.0.0.1", 0) as entrance, socket.create_connection(entrance.getsockname()):
        accepted, _ = entrance.accept()
        assert not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert asyncio.run(option_of(accepted))
