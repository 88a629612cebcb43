"""Closed unless opened: every route refuses whoever is not known, and no GET changes anything (field case R75)."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import iter_route_contexts

from testigo.access.roles import RIGHTS, Right, Role
from testigo.web.routes import Guarded, Open
from tests.web.conftest import Site
from tests.worker.kit import await_that

_DIGEST = """SELECT md5(string_agg(CAST(t AS text), chr(10) ORDER BY CAST(t AS text))) AS digest FROM testigo."{}" t"""

OPEN = {
    ("GET", "/"),
    ("GET", "/api/v1/health/live"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/horizon/login"),
    ("POST", "/horizon/login"),
    ("GET", "/horizon/login/oidc"),
    ("GET", "/horizon/login/oidc/back"),
    ("GET", "/horizon/static/{name}"),
}
"""Every route that answers somebody of whom nothing is known."""


def routes_of(site: Site) -> set[tuple[str, str]]:
    """The method and path of each route, however deep it is included."""
    return {
        (method, context.path)
        for context in iter_route_contexts(site.app.routes)
        for method in (context.methods or ())
        if context.path and method != "HEAD"
    }


def filled(path: str) -> str:
    """A path of this pattern."""
    return re.sub(r"\{[^}]*\}", "0197f3c2-a1b4-7000-8000-000000000000", path)


def test_every_route_is_guarded(site: Site) -> None:
    """Whatever was added to the application went through the router that asks for a right."""
    routes = [context.original_route for context in iter_route_contexts(site.app.routes)]
    unguarded = {route.path for route in routes if not isinstance(route, Guarded)}  # type: ignore[attr-defined]
    assert unguarded == set()


def test_without_credentials_every_route_answers_401(site: Site) -> None:
    """Pages, JSON, streams: nothing is told to whoever sends no login and no token (spec C-11; field case R75)."""
    anybody = site.anybody()
    answers = {
        (method, path): anybody.request(method, filled(path), headers={"Origin": site.url}).status_code
        for method, path in routes_of(site) - OPEN
    }
    assert len(answers) > 20
    assert {route: status for route, status in answers.items() if status != 401} == {}
    assert routes_of(site) >= OPEN


@pytest.mark.parametrize("role", list(Role))
def test_a_role_that_lacks_the_right_is_refused_at_every_route(site: Site, role: Role) -> None:
    """Logged in or by a token; what was tried to be changed is written down as denied, and nothing changed."""
    lacking = {
        (method, path)
        for method, path, needs in guarded(site)
        if isinstance(needs, Right) and needs not in RIGHTS[role]
    }
    assert lacking or role is Role.ADMIN
    clients = site.as_(role), site.program(role)
    at_rest(site)
    before = content(site)
    for client in clients:
        answers = {route: client.request(route[0], filled(route[1])).status_code for route in lacking}
        assert {route: status for route, status in answers.items() if status != 403} == {}
    assert content(site) == before
    denied = site.world.query("SELECT 1 FROM testigo.audit WHERE result = 'denied'")
    assert len(denied) == 2 * len([route for route in lacking if route[0] != "GET"])


@pytest.mark.parametrize("job", ["%00", "%0a", "%e2%80%a8", "%ff", "a%20", "%C3%A9" * 100])
def test_whatever_was_asked_for_it_is_written_down_who_was_denied(site: Site, job: str) -> None:
    """A path that is no line of text hides nobody."""
    assert site.as_(Role.VIEWER).post(f"/api/v1/jobs/{job}/cancel").status_code == 403
    (row,) = site.world.query("SELECT what, result FROM testigo.audit")
    assert row.what.startswith("POST /api/v1/jobs/")
    assert row.result == "denied"


def test_no_get_changes_anything(site: Site) -> None:
    """Whatever an administrator's browser is made to fetch; streams among it, which are left at once."""
    (job,) = site.world.submit()
    admin = site.as_(Role.ADMIN)
    at_rest(site)
    before = content(site)
    statuses = {}
    for method, path, _ in guarded(site):
        if method == "GET":
            asked = re.sub(r"\{job_id\}", job, path)
            with admin.stream("GET", filled(asked), params={"topics": "jobs", "stream": "q", "name": "q"}) as answer:
                statuses[path] = answer.status_code
    assert len(statuses) > 40
    assert {path: status for path, status in statuses.items() if status >= 500} == {}
    assert statuses["/horizon/jobs/{job_id}"] == statuses["/horizon/jobs/{job_id}/cancel"] == 200
    assert content(site) == before


def guarded(site: Site) -> list[tuple[str, str, Right | Open]]:
    """The method, path and need of each route."""
    return [
        (method, context.path, context.original_route.needs)
        for context in iter_route_contexts(site.app.routes)
        if isinstance(context.original_route, Guarded) and context.path
        for method in context.methods or ()
    ]


def at_rest(site: Site) -> None:
    """End what the server does by itself."""
    tasks = site.app.state.background._tasks
    for task in tasks:
        task.get_loop().call_soon_threadsafe(task.cancel)
    await_that(lambda: all(task.done() for task in tasks), "the end of the chores")


def content(site: Site) -> dict[str, str]:
    """A digest of each table, but of what the server does by itself and of when somebody was seen or denied."""
    named = site.world.query("SELECT tablename FROM pg_tables WHERE schemaname = 'testigo' ORDER BY 1")
    tables = {row.tablename for row in named} - {"audit", "audit_head", "token", "login"}
    return {
        table: str(site.world.query(_DIGEST.format(table))[0].digest)
        for table in sorted(tables)
        if not table.startswith("statistic")
    }


def test_the_bare_address_leads_to_the_panel(site: Site) -> None:
    """Which asks who is there; behind a proxy, to where the proxy has it."""
    answer = site.anybody().get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/horizon")
