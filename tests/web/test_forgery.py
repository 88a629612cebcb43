"""What a browser was tricked into sending changes nothing (field case R74)."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import pytest

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.authority.read import paused
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import CSRF_HEADER, csrf_of
from tests.web.conftest import Site

PAUSE = "/horizon/queues/pause"


def is_changed(site: Site) -> bool:
    """Whether anything was paused."""
    return bool(site.db.run(paused).items)


def post(client: httpx.Client, headers: Mapping[str, str | None] | None = None, **fields: str) -> httpx.Response:
    """A form that would pause a queue, with these headers in the place of the browser's own; None leaves one out."""
    form = {"name": "q", "reason": "test", "action_id": new_id(), **fields}
    request = client.build_request("POST", PAUSE, data=form)
    for name, value in (headers or {}).items():
        request.headers.pop(name, None)
        if value is not None:
            request.headers[name] = value
    return client.send(request)


def test_a_form_of_our_own_pages_is_taken(site: Site) -> None:
    """With the login's token in its field, and sent by our own page, it is done."""
    operator = site.as_(Role.OPERATOR)
    answer = post(operator, {CSRF_HEADER: None}, csrf=operator.headers[CSRF_HEADER])
    assert answer.status_code == 303, answer.text
    assert is_changed(site)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": None, "Referer": "https://evil.example/page"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1@evil.example"},
        {"Origin": "http://[::1"},
        {"Origin": "javascript:alert(1)"},
    ],
)
def test_a_page_of_another_site_changes_nothing(site: Site, headers: dict[str, str | None]) -> None:
    """Even if it knew the token: the browser itself says from where a form comes."""
    answer = post(site.as_(Role.ADMIN), headers)
    assert answer.status_code == 403
    assert not is_changed(site)


@pytest.mark.parametrize("token", [None, "", "x", csrf_of("somebody else's secret"), csrf_of(""), "é" * 64])
def test_without_the_login_s_own_token_nothing_is_changed(site: Site, token: str | None) -> None:
    """A token that is missing, forged, or of another login."""
    fields = {} if token is None else {"csrf": token}
    answer = post(site.as_(Role.ADMIN), {CSRF_HEADER: None}, **fields)
    assert answer.status_code == 403
    assert not is_changed(site)


def test_a_token_that_is_no_text_is_none(site: Site) -> None:
    """A form may say of its parts how they are to be decoded, and decode into what is no Unicode."""
    admin = site.as_(Role.ADMIN)
    del admin.headers[CSRF_HEADER]
    form = b'--B\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n\\ud800\r\n--B--\r\n'
    sent = {"Content-Type": "multipart/form-data; boundary=B; charset=unicode_escape"}
    assert admin.post(PAUSE, content=form, headers=sent).status_code == 403


def test_the_token_does_not_outlive_its_login(site: Site) -> None:
    """It follows from the cookie's secret: with another login's cookie it is forged."""
    first, second = site.browser(site.logged_in("admin")), site.browser(site.logged_in("admin"))
    assert post(second, {CSRF_HEADER: first.headers[CSRF_HEADER]}).status_code == 403
    assert not is_changed(site)


def test_a_program_needs_neither(site: Site) -> None:
    """No browser attaches an `Authorization` of its own accord."""
    answer = post(site.program(Role.OPERATOR))
    assert answer.status_code == 303
    assert is_changed(site)


def test_a_bad_token_is_refused_beside_a_good_cookie(site: Site) -> None:
    """Whoever sends a token is known by it alone."""
    admin = site.as_(Role.ADMIN)
    for sent in ("Bearer testigo_x_y", "Basic YTpi", "Bearer", ""):
        assert post(admin, {"Authorization": sent}).status_code == 401
    assert not is_changed(site)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_no_other_method_does_what_the_form_does(site: Site, method: str) -> None:
    """A GET shows the page that asks, and the others nothing."""
    answer = site.as_(Role.ADMIN).request(method, PAUSE, params={"name": "q", "action_id": new_id()})
    assert answer.status_code == (200 if method == "GET" else 405)
    assert not is_changed(site)


def test_somebody_else_s_cookie_is_nobody_s(site: Site) -> None:
    """Secrets that were never given, however they are written."""
    for secret in ("", "x", "0" * 64, "0" * 10_000, "%00", "a;b"):
        client = site.client({"Origin": site.url, CSRF_HEADER: csrf_of(secret)})
        client.headers["Cookie"] = f"{LOGIN_COOKIE}={secret}"
        assert post(client).status_code == 401
    assert not is_changed(site)


def test_a_form_sent_twice_is_one_receipt(site: Site) -> None:
    """The double click on a button: both are answered alike, and done once."""
    operator, action = site.as_(Role.OPERATOR), new_id()
    first, second = post(operator, action_id=action), post(operator, action_id=action)
    assert (first.status_code, first.headers["location"]) == (second.status_code, second.headers["location"])
    rows = site.world.query("SELECT 1 FROM testigo.audit WHERE what = 'queues.pause'")
    assert len(rows) == 1
