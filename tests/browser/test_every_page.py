"""Every page, in each theme, on a screen and on a telephone, as who may act and as who may not (panel.md *Tests*)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from testigo.access.roles import Right, Role
from testigo.access.who import Via, Who
from testigo.authority.actions import JobId
from testigo.rules.states import State
from testigo.store.database import Database
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.browser.conftest import QUICK, visiting
from tests.browser.installation import LONG, Installation, hostile, operations_at_rest, shop
from tests.browser.visits import faults
from tests.services import create_database, drop_database
from tests.web.conftest import Site, served
from tests.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs_chromium

WIDTHS = {"screen": {"width": 1280, "height": 900}, "telephone": {"width": 390, "height": 844}}

REFUSED = {
    "/nowhere": 404,
    "/jobs?q=colour:red": 422,
    "/queues/show?name=%00": 422,
    "/settings/users/disable?name=x": 403,
}
"""Pages that say why they have nothing to show, and with which status."""

ONLY = {"light": (), "dark": ("color-contrast",)}
"""The rules of axe that are asked in a theme, all where none is named: themes differ in their colours alone."""


@dataclass
class Seen:
    """The site of an installation in which everything has happened, and jobs with names that nobody would wish for."""

    site: Site
    made: Installation
    hostile: list[JobId]


@pytest.fixture(scope="module")
def seen(server_url: str, template_name: str) -> Iterator[Seen]:
    """One such site for all tests of this module, for none of them changes anything."""
    name = f"seen_{uuid.uuid4().hex}"
    url = create_database(server_url, name, template=template_name)
    with Database(url) as db:
        world = World(db)
        made = shop(world)
        unwished = hostile(made)
        with operations_at_rest(url), served(url, world, QUICK) as site:
            yield Seen(site, made, unwished)
    drop_database(server_url, name)


def pages(seen: Seen, role: Role) -> Iterator[str]:
    """Every page that this role may see, with something on it."""
    made, person = seen.made, Who("", role, Via.LOGIN)
    yield from ("", "/jobs?q=after:any", "/jobs?q=queue:nowhere", "/failed", "/queues", "/kinds", "/workers", "/events")
    yield from ("/workers?state=dead", "/operations", "/settings", "/analyses", "/operations/choose?q=state:failed")
    yield from ("/queues/show?name=payments", f"/queues/show?name={LONG}", "/events?stream=payments")
    yield from (f"/workers/show?session={each}" for each in (made.worker, made.dead))
    yield from (f"/operations/{made.operation}", "/events/one?stream=payments&sequence=1")
    if not person.may(Right.AUDIT):
        yield from (f"/jobs/{made.jobs[state]}" for state in (State.PERMANENT_FAILURE, State.RUNNING))
        return
    failed, running = made.failed[0], made.jobs[State.RUNNING]
    yield from (f"/jobs/{job}" for job in (*made.jobs.values(), *seen.hostile[::3]))
    yield from ("/audit", "/audit?verify=0", f"/jobs/{failed}/retry", f"/jobs/{running}/cancel")
    yield from ("/operations/retry/confirm?q=state:failed", "/queues/pause?name=mail", "/queues/resume?name=reports")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_every_page_is_well(browser: Browser, seen: Seen, role: Role, width: str, theme: str) -> None:
    """It is answered, says and asks for nothing that it should not, axe finds nothing, and it fits the screen."""
    with visiting(browser, seen.site, viewport=WIDTHS[width]) as somebody:
        somebody.log_in(role)
        somebody.looks(theme=theme)
        page = somebody.open("/horizon")
        found: list[str] = []
        for path in pages(seen, role):
            somebody.go(page, f"/horizon{path}")
            found += faults(page, only=ONLY[theme])
        for path, status in REFUSED.items():
            somebody.go(page, f"/horizon{path}", status)
            found += faults(page, only=ONLY[theme])
        somebody.context.clear_cookies(name=LOGIN_COOKIE)
        somebody.go(page, "/horizon/login")
        found += faults(page, only=ONLY[theme])
        assert not found, "\n".join(found)


def test_both_languages_are_well(browser: Browser, seen: Seen) -> None:
    """Spanish is as long as English on a telephone, or its pages are made for it; a browser's wish is heard."""
    for language, said in (("en-GB", "Failed jobs"), ("es-ES", "Trabajos fallidos")):
        with visiting(browser, seen.site, viewport=WIDTHS["telephone"], locale=language) as somebody:
            page = somebody.log_in(Role.OPERATOR).open("/horizon")
            found = list(faults(page))
            somebody.go(page, "/horizon/failed")
            found += faults(page)
            assert not found, "\n".join(found)
            expect(page.locator("h1")).to_have_text(said)
            expect(page.locator("html")).to_have_attribute("lang", language[:2])
