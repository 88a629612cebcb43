"""Settings: one's own password and logins; for administrators, who may log in and which tokens work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from testigo.access.logins import log_in, make_link, use_link
from testigo.access.passwords import hashed
from testigo.access.roles import RIGHTS, Role
from testigo.access.secret import Secret
from testigo.access.tokens import NewToken, create_token
from testigo.access.users import add_user
from testigo.authority.actions import new_id
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.web.conftest import Site
from tests.web.panel.paper import Paper, paper, press
from tests.web.panel.stage import plain_browser

OLD, NEW = "correct horse battery", "a better horse"


def logged_in(site: Site, name: str = "ana") -> httpx.Client:
    """A browser of a user with a password."""
    secret = Secret.new()
    site.db.run(log_in, name, secret.digest, epoch=1)
    return site.client({"Origin": site.url}, {LOGIN_COOKIE: secret.text})


@pytest.fixture
def ana(site: Site) -> httpx.Client:
    """Her browser; her password is OLD."""
    site.db.run(add_user, "ana", Role.OPERATOR, hashed(OLD, name="ana"), action=site.world.action())
    return logged_in(site)


def settings(browser: httpx.Client) -> Paper:
    """The page."""
    return paper(browser.get("/horizon/settings"))


def entering(site: Site, password: str) -> int:
    """What a login with this password is answered."""
    data = {"name": "ana", "password": password}
    return site.client({"Origin": site.url}).post("/horizon/login", data=data).status_code


def test_a_password_is_changed_and_every_other_login_ends(site: Site, ana: httpx.Client) -> None:
    """This browser stays logged in; the audit says that it was done, and no password is in it."""
    other = logged_in(site)
    answer = press(ana, settings(ana).form("/password"), old=OLD, new=NEW, again=NEW)
    assert answer.status_code == 303
    assert "The password is changed." in paper(ana.get(answer.headers["location"])).text
    assert other.get("/horizon").status_code == 401
    assert (entering(site, OLD), entering(site, NEW)) == (401, 303)
    (row,) = site.world.query("SELECT a.*, CAST(to_json(a) AS text) AS whole FROM testigo.audit a")
    assert (row.actor, row.what, list(row.objects)) == ("user:ana", "users.password", ["user:ana"])
    assert OLD not in row.whole
    assert NEW not in row.whole


@pytest.mark.parametrize(
    ("old", "new", "again", "field"),
    [
        (OLD, NEW, "other", "again"),
        ("wrong", NEW, NEW, "old"),
        (OLD, "short", "short", "password"),
        ("", NEW, NEW, "old"),
    ],
)
def test_a_password_is_not_changed_by_mistake(
    site: Site, ana: httpx.Client, old: str, new: str, again: str, field: str
) -> None:
    """Two that differ, one that is not the old one, one that is too short: each is said, without repeating it."""
    answer = press(ana, settings(ana).form("/password"), old=old, new=new, again=again)
    assert field in paper(answer, 422).text
    assert new not in answer.text
    assert entering(site, OLD) == 303


def test_whoever_came_by_a_link_gives_themselves_a_first_password(site: Site) -> None:
    """There is no old one to be known; from then on there is."""
    link, secret = Secret.new(), Secret.new()
    site.db.run(make_link, "ana", link.digest, action=site.world.action())
    site.db.run(use_link, link.digest, secret.digest)
    ana = site.client({"Origin": site.url}, {LOGIN_COOKIE: secret.text})
    assert press(ana, settings(ana).form("/password"), new=NEW, again=NEW).status_code == 303
    assert entering(site, NEW) == 303
    assert "old" in paper(press(ana, settings(ana).form("/password"), new=OLD, again=OLD), 422).text


def test_the_old_password_cannot_be_guessed_there(ana: httpx.Client) -> None:
    """Tries count as those of the login do."""
    form = settings(ana).form("/password")
    answers = [press(ana, form, old="wrong", new=NEW, again=NEW).status_code for _ in range(7)]
    assert answers[0] == 422
    assert answers[-1] == 429


def test_other_logins_are_listed_and_ended(site: Site, ana: httpx.Client) -> None:
    """This one goes on; the audit tells of it once, however often the button is pressed."""
    other = logged_in(site)
    page = settings(ana)
    assert page.text.count("(this one)") == 1
    for _ in range(2):
        assert press(ana, page.form("/logins/end")).status_code == 303
    (row,) = site.world.query("SELECT * FROM testigo.audit")
    assert (row.actor, row.what, list(row.objects)) == ("user:ana", "users.end_logins", ["user:ana"])
    assert other.get("/horizon").status_code == 401
    assert ana.get("/horizon").status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_everybody_sees_what_their_role_may_and_only_administrators_the_others(site: Site, role: Role) -> None:
    """Users and tokens are an administrator's matter."""
    page = settings(plain_browser(site, role))
    assert all(str(right) in page.text for right in RIGHTS[role])
    assert ("Users testigo user add" in page.text) is (role is Role.ADMIN)
    assert ("Tokens testigo token create" in page.text) is (role is Role.ADMIN)


def test_an_administrator_disables_and_enables_a_user(site: Site, ana: httpx.Client) -> None:
    """At once: her logins end with it."""
    admin = plain_browser(site, Role.ADMIN)
    asked = paper(admin.get("/horizon/settings/users/disable?name=ana"))
    assert "Their logins end now" in asked.text
    assert press(admin, asked.form("/users/disable"), reason="left").status_code == 303
    assert ana.get("/horizon").status_code == 401
    assert entering(site, OLD) == 401
    asked = paper(admin.get(settings(admin).link("Enable")))
    press(admin, asked.form("/users/enable"))
    assert entering(site, OLD) == 303


def test_the_audit_names_a_user_as_they_are_named(site: Site, ana: httpx.Client) -> None:
    """However the name was written: whoever looks for what was done to her finds it."""
    admin = site.as_(Role.ADMIN)
    sent = {"name": "ANA", "action_id": new_id()}
    assert admin.post("/horizon/settings/users/disable", data=sent).status_code == 303
    assert ana.get("/horizon").status_code == 401
    (row,) = site.world.query("SELECT a.objects FROM testigo.audit a")
    assert list(row.objects) == ["user:ana"]


def test_an_administrator_revokes_a_token(site: Site) -> None:
    """It works until then, and its secret is on no page."""
    token, until = NewToken.new(), datetime.now(UTC) + timedelta(days=1)
    action = site.world.action()
    site.db.run(create_token, "deploy", Role.VIEWER, until, token.secret.digest, id=token.id, action=action)
    program = site.client({"Authorization": f"Bearer {token.secret.text}"})
    assert program.get("/horizon/queues").status_code == 200
    admin = plain_browser(site, Role.ADMIN)
    page = settings(admin)
    assert token.secret.text not in page.html
    assert token.secret.digest not in page.html
    asked = paper(admin.get(page.link("Revoke")))
    assert press(admin, asked.form("/tokens/revoke")).status_code == 303
    assert program.get("/horizon/queues").status_code == 401
    assert "revoked" in settings(admin).text


@pytest.mark.parametrize("path", ["users/disable", "users/enable", "tokens/revoke"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.REVIEWER])
def test_nobody_else_manages(site: Site, role: Role, path: str) -> None:
    """Neither is it asked nor done."""
    browser = plain_browser(site, role)
    assert browser.get(f"/horizon/settings/{path}?name=admin").status_code == 403
    csrf = dict(paper(browser.get("/horizon")).form("/logout").fields)["csrf"]
    data = {"csrf": csrf, "name": "admin", "action_id": "x"}
    assert browser.post(f"/horizon/settings/{path}", data=data).status_code == 403
    assert plain_browser(site, Role.ADMIN).get("/horizon").status_code == 200


def test_a_form_of_another_login_changes_nothing(site: Site, ana: httpx.Client) -> None:
    """Its token is not this login's."""
    form = settings(ana).form("/password")
    foreign = dict(paper(plain_browser(site, Role.ADMIN).get("/horizon")).form("/logout").fields)["csrf"]
    assert press(ana, form, csrf=foreign, old=OLD, new=NEW, again=NEW).status_code == 403
    assert entering(site, OLD) == 303


def test_the_last_administrator_cannot_disable_themselves(site: Site) -> None:
    """It is said why, and written down; they go on."""
    admin = plain_browser(site, Role.ADMIN)
    asked = paper(admin.get("/horizon/settings/users/disable", params={"name": "admin"}))
    refused = press(admin, asked.form("/users/disable"), reason="on leave")
    assert refused.status_code == 409
    assert "admin is the last administrator who can log in: nobody could manage users any more." in refused.text
    (row,) = site.world.query("SELECT what, result, code FROM testigo.audit")
    assert (row.what, row.result, row.code) == ("users.disable", "refused", "STATE_CONFLICT")
    assert admin.get("/horizon/settings").status_code == 200
