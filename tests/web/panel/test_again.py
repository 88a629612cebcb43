"""A form that was refused: from the page that says so one comes back to it, or sends it once more as it was."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from testigo.access.passwords import hashed
from testigo.access.roles import Role
from testigo.access.users import add_user
from testigo.authority.actions import new_id
from testigo.errors import Busy
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser

PAUSE = "/horizon/queues/pause"
ASKED = f"{PAUSE}?name=mail"
TYPED = "the mail server & its sister are down"


def test_the_way_back_leads_to_the_form_with_the_reason(site: Site) -> None:
    """Whatever was wrong with what was sent; there it needs no second typing."""
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(ASKED)).form("/queues/pause")
    browser.headers["Referer"] = site.url + ASKED
    refused = press(browser, form, name="", reason=TYPED)
    assert refused.status_code == 422
    again = paper(browser.get(paper(refused, 422).link("Back to the form")))
    assert dict(again.form("/queues/pause").fields) | {"csrf": "", "action_id": ""} == {
        "csrf": "",
        "action_id": "",
        "name": "mail",
        "reason": TYPED,
    }


def test_what_could_not_be_done_just_now_is_sent_again_as_the_same_order(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pressed twice it is done once: it has the action that it had."""
    pausing = sys.modules["testigo.web.panel.pausing"]
    pause, failures = pausing.pause, iter([Busy("Not now.")])

    def at_first_busy(*given: Any, **named: Any) -> Any:
        for failure in failures:
            raise failure
        return pause(*given, **named)

    monkeypatch.setattr(pausing, "pause", at_first_busy)
    browser = plain_browser(site, Role.OPERATOR)
    refused = press(browser, paper(browser.get(ASKED)).form("/queues/pause"), reason=TYPED)
    again = paper(refused, 503).form("/queues/pause")
    assert [press(browser, again).status_code for _ in range(2)] == [303, 303]
    rows = site.world.query("SELECT reason FROM testigo.audit WHERE what = 'queues.pause' AND result = 'done'")
    assert [row.reason for row in rows] == [TYPED]


def test_whose_login_ended_meanwhile_comes_back_to_the_form_after_the_next(site: Site) -> None:
    """Not to the address that it was sent to, which is no page."""
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get("/horizon")).form("/logout")
    press(browser, form)
    asked = paper(browser.post(PAUSE, data={"name": "mail"}, headers={"Referer": site.url + ASKED}), 401)
    assert dict(asked.form("/login").fields)["back"] == ASKED


REFERERS = [
    "",
    "https://evil.example/",
    "https://evil.example/other?x=1",
    "http://[",
    "javascript:alert(1)",
    "{site}/api/v1/jobs",
    "{site}/horizon/../elsewhere",
    "{site}/horizon/operations/cancel",
]


@pytest.mark.parametrize("referer", REFERERS)
def test_where_the_page_is_not_known_there_is_no_way_back_to_it(site: Site, referer: str) -> None:
    """Nor to the address of what was sent: it answers no GET."""
    browser = plain_browser(site, Role.OPERATOR)
    headers = {"Referer": referer.replace("{site}", site.url)}
    refused = browser.post("/horizon/operations/cancel", data={"action_id": new_id()}, headers=headers)
    page = paper(refused, 403)
    led = {given.get("href") for tag, given in page.elements if tag == "a"}
    assert "/horizon" in led
    assert "Back to the form" not in page.text
    assert not {address for address in led if address and "/operations/cancel" in address}


def test_no_password_is_given_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a form to be sent again nor in an address."""

    def busy(*_: object, **__: object) -> None:
        raise Busy("Not now.")

    site.db.run(add_user, "ana", Role.VIEWER, hashed("correct horse", name="ana"), action=site.world.action())
    browser = site.browser(site.logged_in("ana"))
    monkeypatch.setattr(sys.modules["testigo.web.panel.settings"].throttle, "begin_own_try", busy)
    typed = {"old": "correct horse", "new": "a better horse", "again": "a better horse"}
    form = dict(paper(browser.get("/horizon/settings")).form("/settings/password").fields)
    headers = {"Referer": f"{site.url}/horizon/settings"}
    page = paper(browser.post("/horizon/settings/password", data=form | typed, headers=headers), 503)
    assert page.link("Back to the form") == "/horizon/settings"
    assert "horse" not in page.html
    assert "Send it again" not in page.text
