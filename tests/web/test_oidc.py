"""Logging in by another's login page: believed as far as it is signed, and no further."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey

from testigo.access.audit import verify
from testigo.access.roles import Role
from testigo.access.throttle import begin_try
from testigo.access.users import disable_user, known
from testigo.authority.actions import new_id
from testigo.errors import TooManyRequests
from testigo.settings import ACCESS, STORE
from testigo.store.sql import Statement
from testigo.web.oidc import COOKIE
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import csrf_of
from tests.races import in_line
from tests.web.conftest import PATIENT, Site, served
from tests.web.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, issuer
from tests.web.panel.paper import paper
from tests.world import World

ANA = "ana@127.0.0.1"

NOBODY_CHANGES = Statement("LOCK TABLE testigo.user IN EXCLUSIVE MODE")


@pytest.fixture(name="there")
def fixture_there() -> Iterator[Issuer]:
    """Whose login page it is."""
    with issuer() as made:
        yield made


@pytest.fixture(name="here")
def fixture_here(there: Issuer, database_url: str, world: World) -> Iterator[Site]:
    """A site that believes it."""
    settings = replace(PATIENT, oidc_issuer=there.url, oidc_client_id=CLIENT_ID, oidc_client_secret=CLIENT_SECRET)
    with served(database_url, world, settings) as site:
        yield site


def return_address(browser: httpx.Client, back: str = "") -> str:
    """Where the issuer sends the browser back to, once it was sent there."""
    away = browser.get("/horizon/login/oidc", params={"back": back})
    assert away.status_code == 303, away.text
    returned = httpx.get(away.headers["location"])
    assert returned.status_code == 302, returned.text
    return str(returned.headers["location"])


def test_whoever_the_issuer_knows_is_let_in(here: Site) -> None:
    """With the role that they have there, under a name that ends in its host; they go on where they wanted to go."""
    browser = here.anybody()
    answer = browser.get(return_address(browser, "/horizon/jobs?state=ready"))
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/horizon/jobs?state=ready"
    assert "httponly" in answer.headers["set-cookie"].lower()
    who = browser.get("/api/v1/who").json()
    assert (who["name"], who["role"]) == (ANA, "operator")


def test_a_role_that_changed_there_is_changed_here(here: Site, there: Issuer) -> None:
    """At the next login; those of before end."""
    first, second = here.anybody(), here.anybody()
    first.get(return_address(first))
    there.claims = {"testigo_role": ["staff", "viewer"]}
    second.get(return_address(second))
    assert second.get("/api/v1/who").json()["role"] == "viewer"
    assert first.get("/api/v1/who").status_code == 401


@pytest.mark.parametrize("claims", [{}, {"testigo_role": "viewer"}])
def test_two_browsers_at_once_are_both_let_in(
    here: Site, there: Issuer, claims: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first login of somebody, and at the first with another role: who comes second finds what the first did."""
    patient = replace(STORE, lock_timeout_seconds=60.0)  # on a slow machine the second comes late
    monkeypatch.setattr("testigo.store.command.STORE", patient)
    if claims:
        before = here.anybody()
        before.get(return_address(before))
        there.claims = claims
    browsers = [here.anybody(), here.anybody()]
    addresses = [return_address(browser) for browser in browsers]
    moves = [partial(browser.get, address) for browser, address in zip(browsers, addresses, strict=True)]
    _, *answers = in_line(here.db, lambda c: NOBODY_CHANGES.rows(c), *moves)
    assert [answer.status_code for answer in answers] == [303, 303]
    told = [browser.get("/api/v1/who").json() for browser in browsers]
    assert [(who["name"], who["role"]) for who in told] == [(ANA, claims.get("testigo_role", "operator"))] * 2
    changes = here.world.query("SELECT what FROM testigo.audit WHERE result = 'done'")
    assert [row.what for row in changes].count("users.add") == 1


def test_names_that_differ_in_their_case_are_two(here: Site, there: Issuer) -> None:
    """As they are to the issuer; and nobody there can choose the name by which one of them is known here."""
    names = []
    for subject in ("ana", "Ana", "ANA", "ana", "Ana"):
        there.claims = {"sub": subject}
        browser = here.anybody()
        browser.get(return_address(browser))
        names.append(browser.get("/api/v1/who").json()["name"])
    assert len(set(names)) == 3
    assert names[3:] == names[:2] == [ANA, names[1]]
    there.claims = {"sub": names[1].removesuffix("@127.0.0.1")}
    browser = here.anybody()
    browser.get(return_address(browser))
    assert browser.get("/api/v1/who").json()["name"] not in names


@pytest.mark.parametrize(
    ("subject", "begins"),
    [
        ("auth0|5f7c8ec7c33c6c004bbafe82", "auth0-5f7c8ec7c33c6c004bbafe82+"),
        ("google-oauth2|1", "google-oauth2-1+"),
        ("_ana", "x_ana+"),
        ("<script>", "x-script-+"),
        ("ÁNA", "x-na+"),
    ],
)
def test_a_name_of_other_signs_is_spelled_with_ours(here: Site, there: Issuer, subject: str, begins: str) -> None:
    """The same one each time, and told apart from those that would be spelled alike."""
    names = []
    for called in (subject, subject.replace("|", "-"), subject):
        there.claims = {"sub": called}
        browser = here.anybody()
        assert browser.get(return_address(browser)).status_code == 303
        names.append(browser.get("/api/v1/who").json()["name"])
    assert names[0].startswith(begins)
    assert names[0].endswith("@127.0.0.1")
    assert names[2] == names[0]
    assert (names[1] == names[0]) is ("|" not in subject)


def test_whom_a_login_adds_or_changes_is_in_the_audit(here: Site, there: Issuer) -> None:
    """As the issuer's doing, once for each; a login that changes nobody has no row."""
    for role in ("operator", "operator", "viewer", "viewer"):
        there.claims = {"testigo_role": role}
        browser = here.anybody()
        assert browser.get(return_address(browser)).status_code == 303
    rows = here.world.query("SELECT * FROM testigo.audit ORDER BY n")
    told = [(row.actor, row.via, row.what, list(row.objects), row.result) for row in rows]
    assert told == [
        ("oidc:127.0.0.1", "oidc", "users.add", [f"user:{ANA}"], "done"),
        ("oidc:127.0.0.1", "oidc", "users.role", [f"user:{ANA}"], "done"),
    ]
    assert here.db.run(verify).broken is None


def test_whoever_logs_in_there_makes_themselves_no_password_here(here: Site) -> None:
    """They would keep it, and their role, when they are nobody there any more: it is neither offered nor done."""
    browser = here.anybody()
    browser.get(return_address(browser))
    page = paper(browser.get("/horizon/settings"))
    assert not [form for form in page.forms if form.action.endswith("/settings/password")]
    csrf = csrf_of(str(browser.cookies.get(LOGIN_COOKIE)))
    sent = {"csrf": csrf, "action_id": new_id(), "new": "a better horse", "again": "a better horse"}
    refused = browser.post("/horizon/settings/password", data=sent, headers={"Origin": here.url})
    assert "testigo user password" in paper(refused, 422).text
    ana = here.db.run(known, ANA)
    assert ana is not None
    assert ana.password_hash is None


def test_whoever_was_disabled_here_stays_out(here: Site) -> None:
    """Whatever the issuer says."""
    browser = here.anybody()
    browser.get(return_address(browser))
    here.db.run(disable_user, ANA, action=here.world.action())
    assert browser.get(return_address(browser)).status_code == 401
    assert browser.get("/api/v1/who").status_code == 401


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"aud": "another"}, 401),
        ({"aud": None}, 401),
        ({"iss": "https://evil.example"}, 401),
        ({"iss": None}, 401),
        ({"nonce": "of another login"}, 401),
        ({"nonce": None}, 401),
        ({"exp": int(time.time()) - 3_600}, 401),
        ({"exp": None}, 401),
        ({"sub": None}, 401),
        ({"sub": "a\u202eb"}, 422),
        ({"sub": "a\nb"}, 422),
        ({"sub": "a" * 200}, 422),
        ({"testigo_role": None}, 403),
        ({"testigo_role": "owner"}, 403),
        ({"testigo_role": ["admin", "viewer"]}, 403),
        ({"testigo_role": {"admin": True}}, 403),
    ],
)
def test_what_is_not_said_as_it_must_be_lets_nobody_in(
    here: Site, there: Issuer, claims: dict[str, Any], status: int
) -> None:
    """Another's token, an old one, one of another login, one without a name or a role."""
    there.claims = claims
    browser = here.anybody()
    answer = browser.get(return_address(browser))
    assert answer.status_code == status, answer.text
    assert LOGIN_COOKIE not in browser.cookies
    assert here.db.run(known, ANA) is None


def test_another_s_signature_lets_nobody_in(here: Site, there: Issuer) -> None:
    """However right the rest is."""
    there.signs_with = RSAKey.generate_key(2048, {"kid": "k"})
    browser = here.anybody()
    assert browser.get(return_address(browser)).status_code == 401
    assert LOGIN_COOKIE not in browser.cookies


def test_a_way_back_that_was_gone_is_closed_to_whoever_has_the_cookie_as_well(here: Site, there: Issuer) -> None:
    """Though the issuer should exchange a code twice, it is worth one login here."""
    there.forgets = False
    first = here.anybody()
    address = return_address(first)
    kept = first.cookies.get(COOKIE)
    assert kept is not None
    assert first.get(address).status_code == 303
    thief = here.client({}, {COOKIE: kept})
    assert thief.get(address).status_code == 401
    assert LOGIN_COOKIE not in thief.cookies


def test_a_way_back_is_of_one_browser_and_works_once(here: Site) -> None:
    """Sent to somebody else it logs them in as nobody: neither as its sender, nor at all."""
    sender, victim = here.anybody(), here.anybody()
    address = return_address(sender)
    assert victim.get(address).status_code == 401
    return_address(victim)
    assert victim.get(address).status_code == 401
    assert LOGIN_COOKIE not in victim.cookies
    assert sender.get(address).status_code == 303
    assert here.anybody().get(address).status_code == 401
    for query in ("", "?code=x", "?state=", "?code=x&state=", "?code=x&state=é"):
        assert here.anybody().get(f"/horizon/login/oidc/back{query}").status_code == 401


@pytest.mark.parametrize("kept", ['{"state": "\\ud800"}', '{"state": 1}', "[1]", "[" * 20_000, "\x00"])
def test_a_cookie_that_is_not_ours_is_none(here: Site, kept: str) -> None:
    """Whatever a stranger writes into it, it is refused and not failed at."""
    stranger = here.client({}, {COOKIE: kept.encode().hex()})
    assert stranger.get("/horizon/login/oidc/back", params={"code": "x", "state": "y"}).status_code == 401


def test_a_login_there_takes_no_failed_try_back(here: Site) -> None:
    """None was counted for it: whoever is somebody there guesses at nobody's password here for that."""
    for n in range(ACCESS.tries_free):
        here.db.run(begin_try, f"name-{n}", "127.0.0.1")
    here.world.query("UPDATE testigo.login_try SET next_at = next_at + interval '1 hour' WHERE scope = 'address'")
    browser = here.anybody()
    assert browser.get(return_address(browser)).status_code == 303
    with pytest.raises(TooManyRequests):
        here.db.run(begin_try, "another", "127.0.0.1")


def test_nobody_becomes_who_was_added_here(here: Site, there: Issuer) -> None:
    """Though they call themselves so there."""
    there.claims = {"sub": "admin", "testigo_role": "viewer"}
    browser = here.anybody()
    browser.get(return_address(browser))
    assert browser.get("/api/v1/who").json()["name"] == "admin@127.0.0.1"
    admin = here.db.run(known, "admin")
    assert admin is not None
    assert admin.role is Role.ADMIN


def test_an_issuer_that_is_away_is_said(here: Site, there: Issuer) -> None:
    """And our own login goes on."""
    there.answers = False
    answer = here.anybody().get("/horizon/login/oidc")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert here.anybody().get("/horizon/login").status_code == 200


def test_without_the_setting_there_is_no_such_way(site: Site) -> None:
    """And no page tells of one."""
    assert site.anybody().get("/horizon/login/oidc").status_code == 404
    assert "oidc" not in site.anybody().get("/horizon/login").text


def test_the_login_page_shows_the_way(here: Site) -> None:
    """Beside our own."""
    assert "/horizon/login/oidc" in here.anybody().get("/horizon/login").text


def test_a_name_that_is_not_said_is_nobody_s(there: Issuer, database_url: str, world: World) -> None:
    """Two of whom the issuer says no name do not become one."""
    settings = replace(
        PATIENT,
        oidc_issuer=there.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        oidc_name_claim="email",
    )
    with served(database_url, world, settings) as site:
        for claims in ({}, {"email": ["None"]}, {"email": True}, {"email": 1}, {"email": ""}):
            there.claims = claims
            browser = site.anybody()
            assert browser.get(return_address(browser)).status_code == 422
            assert LOGIN_COOKIE not in browser.cookies
