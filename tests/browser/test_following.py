"""A page follows what happens, moves nothing that somebody is at, and holds no connection that others need."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from testigo.access.roles import Role
from testigo.authority.submissions import NewJob
from tests.browser.conftest import QUICK, visiting
from tests.browser.serving import Serving
from tests.browser.visits import Visitor
from tests.web.conftest import Site
from tests.web.panel.stage import running
from tests.worker.kit import PATIENCE_SECONDS, await_that
from tests.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs_chromium

PATIENT = replace(QUICK, stop_seconds=20 * PATIENCE_SECONDS)
"""A server that would wait for requests, and so for open streams, until long after a test gave up."""

TABS = 8

# A browser without a screen has no tab that is behind another: the page is told that it is.
_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def follows(page: Page) -> None:
    """The page follows what happens."""
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def submit(world: World, count: int) -> None:
    """So many jobs at once."""
    world.submit(*[NewJob(kind="work", queue="q") for _ in range(count)])


def test_a_page_changes_by_itself_when_a_job_ends(site: Site, visitor: Visitor) -> None:
    """Its state, its timeline and its buttons; the page is the same one, and was not loaded again."""
    lease, worker = running(site.world)
    page = visitor.log_in(Role.OPERATOR).open(f"/horizon/jobs/{lease.job_id}")
    follows(page)
    page.evaluate("window.same = true")
    worker.succeed(lease)
    expect(page.locator(".big-state")).to_have_text("succeeded")
    expect(page.locator("#timeline")).to_contain_text("succeeded")
    expect(page.get_by_role("link", name="Cancel…")).to_have_count(0)
    assert page.evaluate("window.same")


@pytest.mark.parametrize("at", ["pointer", "focus", "choice"])
def test_rows_do_not_move_under_somebody(site: Site, visitor: Visitor, at: str) -> None:
    """Neither under the pointer nor under the focus, nor while one is chosen: it is said how many are new."""
    submit(site.world, 3)
    page = visitor.log_in(Role.OPERATOR).open("/horizon/jobs")
    follows(page)
    rows = page.locator("#found tbody tr")
    before = rows.first.get_attribute("id")
    if at == "pointer":
        rows.first.hover()
    elif at == "focus":
        rows.first.get_by_role("link").focus()
    else:
        rows.first.get_by_role("checkbox").check()
    submit(site.world, 14)
    said = page.get_by_role("status").filter(has_text="new")
    expect(said).to_contain_text("14 new")
    expect(rows).to_have_count(3)
    assert rows.first.get_attribute("id") == before
    said.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(17)
    expect(said).to_have_count(0)
    expect(page.locator("main")).to_be_focused()


def test_pause_holds_a_page_and_its_stream(site: Site, visitor: Visitor) -> None:
    """Nothing is asked for until it shall follow again, which a page that is opened meanwhile remembers."""
    submit(site.world, 1)
    page = visitor.log_in(Role.VIEWER).open("/horizon/jobs")
    follows(page)
    hub = site.app.state.hub
    await_that(lambda: hub.streams == 1, "the stream")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live")).to_contain_text("Paused")
    await_that(lambda: hub.streams == 0, "the end of the stream")
    submit(site.world, 1)
    expect(page.locator("#found tbody tr")).to_have_count(1)
    visitor.go(page, "/horizon/queues")
    expect(page.locator("#live")).to_contain_text("Paused")
    visitor.go(page, "/horizon/jobs")
    submit(site.world, 1)
    page.get_by_role("button", name="Follow").click()
    expect(page.locator("#found tbody tr")).to_have_count(3)
    await_that(lambda: hub.streams == 1, "the stream")


def test_a_tab_that_nobody_sees_closes_its_stream(site: Site, visitor: Visitor) -> None:
    """And has missed nothing when it is seen again."""
    submit(site.world, 1)
    page = visitor.log_in(Role.VIEWER).open("/horizon/jobs")
    follows(page)
    hub = site.app.state.hub
    await_that(lambda: hub.streams == 1, "the stream")
    page.evaluate(_HIDE, True)
    await_that(lambda: hub.streams == 0, "the end of the stream")
    submit(site.world, 1)
    page.evaluate(_HIDE, False)
    expect(page.locator("#found tbody tr")).to_have_count(2)
    await_that(lambda: hub.streams == 1, "the stream")


def test_a_server_that_restarts_is_found_again(browser: Browser, database_url: str, world: World) -> None:
    """Meanwhile the page says since when it is stale; what happened in between is on it afterwards."""
    with ExitStack() as stack:
        serving = Serving(database_url, world, PATIENT, stack)
        somebody = stack.enter_context(visiting(browser, serving.site))
        submit(world, 1)
        page = somebody.log_in(Role.OPERATOR).open("/horizon/jobs")
        follows(page)
        somebody.expected |= {"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"}
        serving.stop()
        expect(page.locator("#live")).to_contain_text("Stale since")
        submit(world, 1)
        serving.start()
        follows(page)
        expect(page.locator("#found tbody tr")).to_have_count(2)


def test_eight_tabs_share_a_stream_and_keep_nobody_out(browser: Browser, database_url: str, world: World) -> None:
    """A browser keeps six connections to a server; the server stops at once, whatever is open."""
    with ExitStack() as stack:
        serving = Serving(database_url, world, PATIENT, stack)
        somebody = stack.enter_context(visiting(browser, serving.site)).log_in(Role.OPERATOR)
        submit(world, 1)
        tabs = [somebody.open("/horizon/jobs") for _ in range(TABS)]
        for tab in tabs:
            follows(tab)
        ninth = somebody.open("/horizon/queues")
        follows(ninth)
        submit(world, 1)
        for tab in tabs:
            expect(tab.locator("#found tbody tr")).to_have_count(2)
        hub = serving.site.app.state.hub
        await_that(lambda: hub.streams == 1, "one stream in place of those that had fewer topics")
        tabs[0].close()
        submit(world, 1)
        for tab in tabs[1:]:
            expect(tab.locator("#found tbody tr")).to_have_count(3)
        somebody.expected.add("ERR_")
        serving.stop()


def test_a_theme_is_there_before_anything_is_drawn(site: Site, visitor: Visitor) -> None:
    """The server writes it into the page: without a script it would be the same, and nothing flashes."""
    page = visitor.log_in(Role.VIEWER).open("/horizon/settings")
    page.get_by_label("dark", exact=True).check()
    page.locator("form:has([name=theme])").get_by_role("button").click()
    answer = visitor.go(page, "/horizon")
    assert 'data-theme="dark"' in answer.text()
    assert dark(page)
    page.emulate_media(color_scheme="light")
    assert dark(page)
    visitor.looks(theme="system")
    visitor.go(page, "/horizon")
    assert not dark(page)
    page.emulate_media(color_scheme="dark")
    assert dark(page)


def dark(page: Page) -> bool:
    """Whether the page's ground is."""
    return bool(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"))


def test_nothing_moves_for_who_wants_no_motion(browser: Browser, site: Site) -> None:
    """No element has a transition or an animation then."""
    with visiting(browser, site, reduced_motion="reduce") as somebody:
        page = somebody.log_in(Role.OPERATOR).open("/horizon")
        moving = """[...document.querySelectorAll("*")].map((each) => getComputedStyle(each))
          .filter((each) => each.transitionDuration !== "0s" || each.animationName !== "none").length"""
        assert page.evaluate(moving) == 0
