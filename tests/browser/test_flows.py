"""What people come for, from the first page to the result: with a script, without one, and with the keyboard alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from testigo.access.passwords import hashed
from testigo.access.roles import Role
from testigo.access.users import set_password_hash
from testigo.rules.outcomes import Fail
from tests.browser.conftest import visiting
from tests.browser.visits import Visitor, faults
from tests.web.conftest import Site
from tests.web.panel.stage import failed, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs_chromium

PASSWORD = "a password of some length"
OUTAGE = Fail("HTTPError", "502 Bad Gateway from payments", 'File "payments.py", line 88, in charge')


def logged_in(somebody: Visitor) -> Page:
    """The page that somebody sees who came to the overview, and was asked who they are."""
    site = somebody.site
    site.db.run(set_password_hash, "operator", hashed(PASSWORD, name="operator"), action=site.world.action())
    page = somebody.open("/horizon/login")
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    return page


def successors(site: Site) -> int:
    """How many jobs take the place of another."""
    return int(site.world.query("SELECT count(*) AS n FROM testigo.job WHERE supersedes IS NOT NULL")[0].n)


def resolve(site: Site) -> None:
    """Have the job that waits run, with success."""
    worker = site.world.worker()
    worker.succeed(worker.take())


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_a_failed_job_is_found_understood_and_retried(browser: Browser, site: Site, script: bool) -> None:
    """By somebody who has just logged in; once the new job has succeeded, the old one has left the list."""
    failed(site.world, outcome=OUTAGE, tags=("order:881",))
    with visiting(browser, site, java_script_enabled=script) as somebody:
        page = logged_in(somebody)
        page.locator("#failures").get_by_role("link", name="HTTPError").click()
        page.get_by_role("link", name="Why?").click()
        expect(page.locator("#why")).to_contain_text("502 Bad Gateway from payments")
        expect(page.get_by_text('File "payments.py", line 88')).to_be_visible()
        page.get_by_role("link", name="Retry…").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Retry this job?")
        page.get_by_role("button", name="Retry the job").click()
        expect(page.locator("#result")).to_be_visible()
        expect(page.locator("#result h2")).to_be_focused()
        page.get_by_role("link", name="Failed", exact=True).click()
        expect(page.locator("#failed")).to_contain_text("0 open · 1 being retried")
        resolve(site)
        page.goto(page.url)
        expect(page.locator("#failed")).to_contain_text("No failed job is open.")
    assert successors(site) == 1


def test_the_keyboard_is_enough(site: Site, visitor: Visitor) -> None:
    """From the login to the retry without a pointer, and the result has the focus."""
    failed(site.world, outcome=OUTAGE)
    page = visitor.log_in(Role.OPERATOR).open("/horizon")
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/failed")
    press(page, "Why?")
    page.wait_for_url("**/jobs/*")
    press(page, "Retry…")
    page.wait_for_url("**/retry")
    press(page, "Retry the job")
    page.wait_for_url("**/jobs/*done=*")
    expect(page.locator("#result h2")).to_be_focused()
    assert successors(site) == 1


def press(page: Page, words: str) -> None:
    """Go with Tab to what says so, and press it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent.trim()")
        if focused == words:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", words
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"the focus never comes to {words}")


def test_shortcuts(site: Site, visitor: Visitor) -> None:
    """Each does what the list of them says; none acts while somebody writes."""
    site.world.submit()
    page = visitor.log_in(Role.OPERATOR).open("/horizon")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert not list(faults(page))
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    places = {"j": "jobs", "f": "failed", "e": "events", "a": "audit", "q": "queues", "w": "workers"}
    for key, place in places.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/horizon/{place}")
    page.keyboard.press("/")
    page.wait_for_url("**/horizon/jobs")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("gfp?")
    expect(page.get_by_role("searchbox")).to_have_value("gfp?")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_attribute("data-state", "paused")
    site.world.submit()
    page.keyboard.press("r")
    expect(page.locator("#found tbody tr")).to_have_count(2)
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_shortcuts_can_be_turned_off(visitor: Visitor) -> None:
    """Then keys are the browser's alone."""
    visitor.log_in(Role.OPERATOR).looks(keys="off")
    page = visitor.open("/horizon/jobs")
    for key in ("g", "f", "?", "/", "p"):
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("searchbox")).not_to_be_focused()
    expect(page.locator("#live")).not_to_have_attribute("data-state", "paused")
    assert page.url.endswith("/horizon/jobs")


def test_all_of_a_cause_are_retried_with_a_reason(site: Site, visitor: Visitor) -> None:
    """The exact number is named and a reason is asked for; the page of the operation follows it to its end."""
    failed(site.world, 7, outcome=OUTAGE)
    page = visitor.log_in(Role.OPERATOR).open("/horizon/failed")
    page.get_by_role("link", name="Retry 7…").click()
    button = page.get_by_role("button", name="Retry 7 jobs")
    button.click()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").fill("payments is back")
    button.click()
    expect(page.locator("#progress")).to_contain_text("7 done, 0 refused, 0 waiting, of 7.")
    assert successors(site) == 7


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_a_job_is_cancelled_and_a_queue_paused_and_resumed(browser: Browser, site: Site, script: bool) -> None:
    """Each is asked for first, with what will happen; the page of the result shows that it did."""
    lease, _ = running(site.world)
    with visiting(browser, site, java_script_enabled=script) as somebody:
        page = somebody.log_in(Role.OPERATOR).open(f"/horizon/jobs/{lease.job_id}")
        page.get_by_role("link", name="Cancel…").click()
        expect(page.locator(".effects")).to_contain_text("it is asked to stop")
        page.get_by_label("Reason").fill("asked twice")
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator(".big-state")).to_have_text("cancelling")
        somebody.go(page, "/horizon/queues")
        page.get_by_role("link", name="Pause…").click()
        page.get_by_label("Reason").fill("deploy")
        page.get_by_role("button", name="Pause").last.click()
        expect(page.locator("main")).to_contain_text("paused")
        page.get_by_role("link", name="Resume…").click()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("link", name="Pause…")).to_be_visible()
    assert site.world.state(lease.job_id) == "cancelling"


def test_a_tab_that_was_left_behind_changes_nothing(site: Site, visitor: Visitor) -> None:
    """The job has changed since: what was asked for is shown beside how the job is, and the reason is not lost."""
    (job,) = site.world.submit()
    visitor.log_in(Role.OPERATOR)
    first, second = (visitor.open(f"/horizon/jobs/{job}/cancel") for _ in range(2))
    for tab, reason in ((first, "the first"), (second, "the second")):
        tab.get_by_label("Reason").fill(reason)
    visitor.expected.add("status of 409")
    first.get_by_role("button", name="Cancel the job").click()
    expect(first.locator(".big-state")).to_have_text("cancelled")
    second.get_by_role("button", name="Cancel the job").click()
    expect(second.get_by_role("alert")).to_contain_text("Nothing was done. The job is no longer as you saw it.")
    expect(second.locator("main")).to_contain_text("the second")
    expect(second.get_by_role("region", name="How the job is now")).to_contain_text("cancelled")
    assert not list(faults(second))


def test_a_double_click_is_one_order(site: Site, visitor: Visitor) -> None:
    """One new job and one row in the audit, whichever of the two answers the browser shows."""
    (job,) = failed(site.world, outcome=OUTAGE)
    page = visitor.log_in(Role.OPERATOR).open(f"/horizon/jobs/{job}/retry")
    page.get_by_role("button", name="Retry the job").dblclick()
    expect(page.locator("#result")).to_be_visible()
    expect(page).to_have_url(re.compile("done="))
    assert successors(site) == 1
    assert site.world.query("SELECT count(*) AS n FROM testigo.audit WHERE what = 'jobs.retry'")[0].n == 1
