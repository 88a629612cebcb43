"""Every page, in each theme, on a screen and on a telephone, as who may act and as who may not (panel.md *Tests*)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from fastapi.routing import iter_route_contexts
from playwright.sync_api import expect
from starlette.routing import compile_path

from testigo.access.roles import Right, Role
from testigo.access.who import Via, Who
from testigo.authority.actions import JobId
from testigo.rules.states import State
from testigo.store.database import Database
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.browser.conftest import QUICK, visiting
from tests.browser.evidence import evidence
from tests.browser.installation import LONG, Installation, hostile, operations_at_rest, shop
from tests.browser.visits import faults
from tests.services import create_database, drop_database
from tests.web.conftest import Site, served
from tests.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.needs_chromium

WIDTHS: dict[str, ViewportSize] = {"screen": {"width": 1280, "height": 900}, "telephone": {"width": 390, "height": 844}}

REFUSED = {
    "/nowhere": 404,
    "/jobs?q=colour:red": 422,
    "/queues/show?name=%00": 422,
    "/settings/users/disable?name=x": 403,
}
"""Pages that say why they have nothing to show, and with which status."""

LOOKS = (
    ("screen", "light", ()),
    ("telephone", "light", ()),
    ("telephone", "dark", ()),
    ("screen", "dark", ("color-contrast",)),
)
"""Width, theme, and the rules of axe that are asked, all where none is named; only these tell themes apart there."""

LOOKERS = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)

NO_PAGE = {
    "/horizon/static/{name}": "a file",
    "/horizon/signals": "a stream",
    "/horizon/jobs.csv": "a file",
    "/horizon/audit.csv": "a file",
    "/horizon/jobs/{job_id}/{name}.json": "a file",
    "/horizon/artifacts/{artifact_id}/download": "a file",
    "/horizon/artifacts/{artifact_id}/attestation": "a file",
    "/horizon/login/oidc": "a way to another's page",
    "/horizon/login/oidc/back": "the way back",
}
"""Routes of the panel that show nothing in a browser, and what they are."""


@dataclass
class Seen:
    """The site of an installation in which everything has happened, and jobs with names that nobody would wish for."""

    site: Site
    made: Installation
    hostile: list[JobId]
    evidence: list[str]


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
            yield Seen(site, made, unwished, evidence(site))
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
    yield from (
        "/operations/cancel/confirm?q=queue:mail",
        f"/operations/unblock/confirm?id={made.jobs[State.BLOCKED_BY_QUALITY]}",
    )
    yield from (f"/kinds/{verb}?name=shop.build_report" for verb in ("pause", "resume"))
    yield from (f"/jobs/{made.jobs[State.BLOCKED_BY_QUALITY]}/unblock", f"/workers/drain?session={made.worker}")


def administered(seen: Seen) -> Iterator[str]:
    """Every page that only an administrator or a reviewer sees; and the evidence, which looks alike to others."""
    yield from (f"/settings/users/{verb}?name=viewer" for verb in ("disable", "enable"))
    yield from ("/settings", "/settings/tokens/revoke?name=deploys", f"/jobs/{seen.made.failed[0]}/forget")
    yield from ("/operations/forget/confirm?q=state:failed", *seen.evidence)


def visits(seen: Seen, role: Role) -> Iterator[tuple[str, int]]:
    """What somebody of this role is shown below /horizon, and with which status."""
    if role is Role.ADMIN:
        yield from ((path, 200) for path in administered(seen))
    else:
        yield from ((path, 200) for path in pages(seen, role))
        yield from REFUSED.items()


@pytest.mark.parametrize("role", LOOKERS)
def test_every_page_is_well(browser: Browser, seen: Seen, role: Role) -> None:
    """It is answered, says and asks for nothing that it should not, axe finds nothing, and it fits each screen."""
    with visiting(browser, seen.site) as somebody:
        page = somebody.log_in(role).open("/horizon")
        found: list[str] = []
        for path, status in visits(seen, role):
            somebody.go(page, f"/horizon{path}", status)
            found += faults_in_all_looks(page)
        somebody.context.clear_cookies(name=LOGIN_COOKIE)
        somebody.go(page, "/horizon/login")
        found += faults_in_all_looks(page)
        assert not found, "\n".join(found)


def faults_in_all_looks(page: Page) -> Iterator[str]:
    """What is wrong with a page on any screen and in any theme, which is its root's and needs no other answer."""
    for width, theme, only in LOOKS:
        page.set_viewport_size(WIDTHS[width])
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
        yield from (f"{width}, {theme}: {fault}" for fault in faults(page, only=only))


def test_every_route_of_the_panel_is_looked_at(seen: Seen) -> None:
    """Whoever adds a page has it looked at here, or says why it is none."""
    contexts = iter_route_contexts(seen.site.app.routes)
    paths = [each.path for each in contexts if each.path and "GET" in (each.methods or ())]
    routes = {path: compile_path(path)[0] for path in paths if path.startswith("/horizon")}
    visited = {path.partition("?")[0] for role in LOOKERS for path, status in visits(seen, role) if status == 200}
    looked_at = {next(route for route, shape in routes.items() if shape.match(f"/horizon{path}")) for path in visited}
    looked_at.add("/horizon/login")
    assert looked_at.isdisjoint(NO_PAGE)
    assert set(routes) - looked_at == set(NO_PAGE)


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
