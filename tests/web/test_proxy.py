"""Behind a proxy that ends TLS and rewrites the prefix, the panel works as without (field case R74)."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from testigo.access import passwords, users
from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.authority.read import paused
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import csrf_of
from tests.web.conftest import PATIENT, Site, served
from tests.world import World

PUBLIC = "https://ops.example.org/tools/testigo"
ORIGIN = "https://ops.example.org"
PREFIX = "/tools/testigo"


@contextmanager
def proxied(target: str, strips: bool) -> Iterator[httpx.Client]:
    """A browser's client of a proxy before `target`: browsers know it as PUBLIC, and speak TLS with it.

    It takes the prefix away if it `strips`; either way the server sees a request of plain HTTP, for another host.
    """
    behind = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path.startswith(PREFIX), f"{self.path} leaves the prefix"
            path = self.path.removeprefix(PREFIX) if strips else self.path
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {**dict(self.headers), "Host": "inner:80", "X-Forwarded-For": "192.0.2.7"}
            line = http.client.HTTPConnection(behind.hostname or "", behind.port)
            line.request(self.command, path, body, headers)
            answer = line.getresponse()
            told = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)
            line.close()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", timeout=90.0) as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(name="site")
def fixture_site(database_url: str, world: World) -> Iterator[Site]:
    """A site that was told where browsers find it, and whom to believe."""
    settings = replace(PATIENT, public_url=PUBLIC, trusted_proxies="127.0.0.1")
    with served(database_url, world, settings) as made:
        yield made


@pytest.mark.parametrize("strips", [True, False])
def test_a_form_works_behind_a_proxy(site: Site, strips: bool) -> None:
    """Its links stay below the prefix, its cookie goes by https only, its own origin is the outer one."""
    secret = site.logged_in("operator").text
    with proxied(site.url, strips) as browser:
        login = browser.get(f"{PREFIX}/horizon")
        assert login.status_code == 401
        assert f'action="{PREFIX}/horizon/login"' in login.text
        assert login.headers["strict-transport-security"]

        browser.headers["Cookie"] = f"{LOGIN_COOKIE}={secret}"
        page = browser.get(f"{PREFIX}/horizon/queues/pause", params={"name": "q"})
        assert page.status_code == 200, page.text
        assert f'href="{PREFIX}/horizon/jobs"' in page.text
        assert 'href="/horizon' not in page.text
        form = {"name": "q", "reason": "", "action_id": new_id(), "csrf": csrf_of(secret)}
        path = f"{PREFIX}/horizon/queues/pause"

        for origin in ("https://evil.example", "http://ops.example.org", "http://inner", site.url):
            assert browser.post(path, data=form, headers={"Origin": origin}).status_code == 403
        assert browser.post(path, data={**form, "csrf": ""}, headers={"Origin": ORIGIN}).status_code == 403
        assert browser.get(path, params=form, headers={"Origin": ORIGIN}).status_code == 200
        assert not site.db.run(paused).items

        done = browser.post(path, data=form, headers={"Origin": ORIGIN})
        assert done.status_code == 303, done.text
        assert done.headers["location"].startswith(f"{PREFIX}/horizon/")
        assert [each.name for each in site.db.run(paused).items] == ["q"]
        (row,) = site.world.query("SELECT address FROM testigo.audit WHERE what = 'queues.pause' AND result = 'done'")
        assert row.address == "192.0.2.7"


def test_the_cookie_is_for_this_installation_and_for_https(site: Site) -> None:
    """Two of them on one host do not log each other out."""
    kept = passwords.hashed("correct horse", name="operator")
    site.db.run(users.set_password_hash, "operator", kept, action=site.world.action())
    form = {"name": "operator", "password": "correct horse"}
    answer = site.anybody().post("/horizon/login", data=form, headers={"Origin": ORIGIN})
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("secure", "httponly", "samesite=lax", f"path={PREFIX}"))


def test_whom_nobody_trusts_cannot_say_who_asks(database_url: str, world: World) -> None:
    """Without the setting, what a request says of itself is not believed."""
    with served(database_url, world) as site:
        operator = site.program(Role.OPERATOR)
        headers = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
        answer = operator.post("/api/v1/queues/q/pause", json={"reason": "test"}, headers=headers)
        assert answer.status_code < 300, answer.text
        assert "strict-transport-security" not in answer.headers
        (row,) = world.query("SELECT address FROM testigo.audit WHERE what = 'queues.pause'")
        assert row.address == "127.0.0.1"
