"""A site to ask: a real database with somebody of each role, and the application behind real HTTP.

    def test_it(site: Site) -> None:
        viewer = site.as_(Role.VIEWER)
        assert viewer.get("/horizon/jobs").status_code == 200

`as_` is a browser in which somebody is logged in: it sends its cookie, and with a change the origin and the
token of its pages, as a form does. `program` sends a token, `anybody` nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI

from testigo.access.logins import log_in
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.tokens import NewToken, create_token
from testigo.access.users import add_user
from testigo.authority.actions import Action
from testigo.settings import Web
from testigo.store.database import Database
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import CSRF_HEADER, csrf_of
from testigo.web.serve import Server, listening
from testigo.web.server import create
from tests.worker.kit import await_that
from tests.world import World

__all__ = ["PATIENT", "Site", "served"]

CLIENT_SECONDS = 90.0
PATIENT = Web(read_seconds=60.0, act_seconds=60.0, requests_per_second=1_000.0, requests_burst=10_000)
"""A server that gives its database as long as tests do, and answers one caller as fast as a test asks."""


@dataclass
class Site:
    """The application at `url`, its installation, and clients of it."""

    app: FastAPI
    url: str
    world: World
    stack: ExitStack
    secrets: dict[Role, Secret] = field(default_factory=dict)

    @property
    def db(self) -> Database:
        """The installation, past both doors."""
        return self.world.db

    def anybody(self) -> httpx.Client:
        """A client of whom nothing is known."""
        return self.client({})

    def as_(self, role: Role) -> httpx.Client:
        """The browser of the user who is named as this role, logged in."""
        if role not in self.secrets:
            self.secrets[role] = self.logged_in(str(role))
        return self.browser(self.secrets[role])

    def program(self, role: Role) -> httpx.Client:
        """A program with a new token of this role."""
        token, name = NewToken.new(), f"program-{Secret.new().text[:8]}"
        until = datetime.now(UTC) + timedelta(days=1)
        digest = token.secret.digest
        self.db.run(create_token, name, role, until, digest, id=token.id, action=self.world.action())
        return self.client({"Authorization": f"Bearer {token.secret.text}"})

    def logged_in(self, name: str) -> Secret:
        """The secret of a new login of this user, without asking for a password."""
        secret = Secret.new()
        self.db.run(log_in, name, secret.digest, epoch=1)
        return secret

    def browser(self, secret: Secret) -> httpx.Client:
        """The browser that holds this secret."""
        headers = {"Origin": self.url, CSRF_HEADER: csrf_of(secret.text)}
        return self.client(headers, {LOGIN_COOKIE: secret.text})

    def client(self, headers: dict[str, str], cookies: dict[str, str] | None = None) -> httpx.Client:
        """A client that sends these with each request, follows no redirect, and is closed with the test."""
        made = httpx.Client(base_url=self.url, headers=headers, cookies=cookies, timeout=CLIENT_SECONDS)
        return self.stack.enter_context(made)


@contextmanager
def served(database_url: str, world: World, settings: Web = PATIENT) -> Iterator[Site]:
    """A site with these settings, on a migrated database of which `world` is another view."""
    for role in Role:
        world.db.run(add_user, str(role), role, None, action=Action("tester"))
    app = create(database_url, settings=settings)
    server, entrance = Server(app), listening("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [entrance]})
    with ExitStack() as stack:
        url = f"http://127.0.0.1:{entrance.getsockname()[1]}"
        thread.start()
        try:
            await_that(lambda: server.started or not thread.is_alive(), "the start of the server")
            assert server.started
            yield Site(app, url, world, stack)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def site(database_url: str, world: World) -> Iterator[Site]:
    """A site with the settings that are the default but for its patience, the test's own."""
    with served(database_url, world) as made:
        yield made
