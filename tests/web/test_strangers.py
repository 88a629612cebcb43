"""What it costs to ask with a credential that nobody has: a query at most, and only so often from one address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import event

from testigo.access.logins import end_logins
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.tokens import NewToken, revoke_token, tokens
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.web.conftest import PATIENT, Site, served
from tests.world import World

BURST = 3

Stranger = Callable[[Site], httpx.Client]


def token(site: Site) -> httpx.Client:
    """A program with a token that was never made."""
    return site.client({"Authorization": f"Bearer {NewToken.new().secret.text}"})


def cookie(site: Site) -> httpx.Client:
    """A browser with a login that never began."""
    return site.client({}, {LOGIN_COOKIE: Secret.new().text})


@pytest.mark.parametrize("stranger", [token, cookie])
def test_guesses_are_held_back_and_nobody_who_is_known_with_them(
    database_url: str, world: World, stranger: Stranger
) -> None:
    """Each guess is another one, so they are counted by where they come from; the answer says how long to wait."""
    with served(database_url, world, replace(PATIENT, requests_per_second=0.001, requests_burst=BURST)) as site:
        known = site.program(Role.VIEWER)
        assert known.get("/api/v1/jobs").status_code == 200
        answers = [stranger(site).get("/api/v1/jobs") for _ in range(BURST + 1)]
        assert [answer.status_code for answer in answers] == [401] * (BURST - 1) + [429] * 2
        assert int(answers[-1].headers["retry-after"]) > 0
        assert known.get("/api/v1/jobs").status_code == 200


def revoked(site: Site) -> None:
    """Every token is."""
    for each in site.db.run(tokens).items:
        site.db.run(revoke_token, each.name, action=site.world.action())


def logged_out(site: Site) -> None:
    """The viewer is, wherever they are."""
    site.db.run(end_logins, "viewer")


@pytest.mark.parametrize(("known", "ended"), [(Site.program, revoked), (Site.as_, logged_out)], ids=["token", "login"])
def test_what_has_ended_is_held_back_as_what_never_was(
    database_url: str, world: World, known: Callable[[Site, Role], httpx.Client], ended: Callable[[Site], None]
) -> None:
    """A program goes on to send the token that was revoked: that it was known once is no reason to ask for ever."""
    with served(database_url, world, replace(PATIENT, requests_per_second=0.001, requests_burst=BURST)) as site:
        client = known(site, Role.VIEWER)
        assert client.get("/api/v1/jobs").status_code == 200
        ended(site)
        answers = [client.get("/api/v1/jobs").status_code for _ in range(BURST + 1)]
        assert answers == [401] * BURST + [429]


@pytest.mark.parametrize("stranger", [token, cookie])
def test_a_guess_costs_one_query(site: Site, stranger: Stranger) -> None:
    """And what is not written as our secrets are costs none."""
    known = site.program(Role.VIEWER)
    assert known.get("/api/v1/jobs").status_code == 200
    asked: list[str] = []
    engine = site.app.state.door._database._engine.sync_engine

    @event.listens_for(engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "digest" in statement:
            asked.append(statement)

    guesses = [stranger(site)]
    for sent in ("testigo_x_y", "0" * 64, NewToken.new().secret.text.upper(), "x" * 4_000):
        guesses += [site.client({"Authorization": f"Bearer {sent}"}), site.client({}, {LOGIN_COOKIE: f"{sent}-"})]
    for guess in guesses:
        assert guess.get("/api/v1/jobs").status_code == 401
    assert len(asked) == 1
