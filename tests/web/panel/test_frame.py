"""The frame of every page: who is there, where they may go, how it looks to them; logging in and out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from testigo.access.logins import make_link
from testigo.access.passwords import hashed
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.users import add_user
from testigo.web.panel.looks import COOKIE, Looks, zones
from testigo.web.panel.pages import NAVIGATION
from testigo.web.panel.words import words_in
from testigo.web.panel.written import Written
from testigo.web.security.cookies import BROWSER_COOKIE, LOGIN_COOKIE
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.sentences import PANEL
from tests.web.panel.stage import plain_browser

PASSWORD = "correct horse battery"


def member(site: Site, name: str = "ana") -> None:
    """Somebody with a password."""
    site.db.run(add_user, name, Role.OPERATOR, hashed(PASSWORD, name=name), action=site.world.action())


def newcomer(site: Site) -> httpx.Client:
    """A browser in which nobody is logged in, at our own origin."""
    client = site.anybody()
    client.headers["Origin"] = site.url
    return client


@pytest.mark.parametrize("role", list(Role))
def test_the_navigation_has_what_the_role_may_see(site: Site, role: Role) -> None:
    """Each place once in the bar and once in the menu of a phone; a viewer is not led to the audit."""
    page = paper(plain_browser(site, role).get("/horizon"))
    led = [given["href"] for tag, given in page.elements if tag == "a" and "data-key" in given]
    wanted = [f"/horizon{place.path}" for place in NAVIGATION if place.path != "/audit" or role is not Role.VIEWER]
    assert led == wanted * 2
    assert f"{role} {role} Log out" in page.text


def test_each_page_says_where_it_is_and_has_one_heading(site: Site) -> None:
    """The place is marked in the navigation; there are a main part, a skip link and one h1."""
    browser = plain_browser(site, Role.ADMIN)
    for place in NAVIGATION:
        page = paper(browser.get(f"/horizon{place.path}"))
        current = {given["href"] for tag, given in page.elements if given.get("aria-current") == "page"}
        assert current == {f"/horizon{place.path}"}
        tags = [tag for tag, _ in page.elements]
        assert (tags.count("h1"), tags.count("main")) == (1, 1), place.path
        assert ("a", {"class": "skip", "href": "#main"}) in page.elements


def test_nothing_on_a_page_needs_what_the_policy_forbids(site: Site) -> None:
    """No style, script or handler is within a page; the one script is a file of ours."""
    browser = plain_browser(site, Role.ADMIN)
    for path in [*(place.path for place in NAVIGATION), "/settings", "/login"]:
        page = paper(browser.get(f"/horizon{path}"))
        for tag, given in page.elements:
            assert tag != "style"
            assert not [name for name in given if name.startswith("on") or name == "style"]
            if tag == "script":
                assert re.fullmatch(r"/horizon/static/panel\.js\?v=[0-9a-f]{12}", str(given["src"]))


def test_templates_leave_escaping_to_the_environment() -> None:
    """No template says that something is safe, or turns escaping off."""
    for file in (PANEL / "templates").glob("*.html"):
        assert not re.search(r"\|\s*safe\b|autoescape", file.read_text("utf-8")), file.name


def test_ids_are_of_one_element_each(site: Site) -> None:
    """What is replaced is found by its id, and labels name their fields by theirs."""
    browser = plain_browser(site, Role.ADMIN)
    site.world.submit()
    for path in [*(place.path for place in NAVIGATION), "/settings", "/queues/show?name=q"]:
        page = paper(browser.get(f"/horizon{path}"))
        ids = [given["id"] for _, given in page.elements if given.get("id")]
        assert len(ids) == len(set(ids)), path
        replaced = [given for _, given in page.elements if "data-live" in given and given.get("id") != "said"]
        assert all(given.get("id") for given in replaced), path
        fields = [str(given["for"]) for tag, given in page.elements if tag == "label" and "for" in given]
        assert set(fields) <= set(ids), path


def test_files_are_kept_by_browsers_and_nothing_else_is_given(site: Site) -> None:
    """A file's address holds its content's digest; what is no file of the panel is not found."""
    nobody = site.anybody()
    style = nobody.get("/horizon/static/panel.css")
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in style.headers["cache-control"]
    assert nobody.get("/horizon/static/panel.js").headers["content-type"] == "text/javascript; charset=utf-8"
    for name in ("nothing.css", "..%2fpages.py", "%2e%2e/pages.py"):
        assert nobody.get(f"/horizon/static/{name}").status_code in (401, 404)


def test_whoever_logs_in_comes_to_the_page_that_they_wanted(site: Site) -> None:
    """The refused page is the login's form, which remembers it."""
    member(site)
    browser = newcomer(site)
    asked = paper(browser.get("/horizon/queues?after=x"), 401)
    answer = press(browser, asked.form("/login"), name="ana", password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/horizon/queues?after=x")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "ana operator" in paper(browser.get("/horizon")).text


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/horizon",
        "//evil.example/horizon",
        "/horizon/../elsewhere",
        "/horizon/x/.%2E/%2e%2e//evil.example",
        "/horizon\\@evil",
        "/horizon/\r\nx",
        "/horizonx",
        "/",
        "x",
        "http://[",
        "javascript:alert(1)",
    ],
)
def test_nobody_is_sent_elsewhere_by_logging_in(site: Site, back: str) -> None:
    """Only a page of this panel is gone on to."""
    member(site)
    answer = newcomer(site).post("/horizon/login", data={"name": "ana", "password": PASSWORD, "back": back})
    assert answer.headers["location"] == "/horizon"


def test_a_wrong_password_and_an_unknown_name_are_answered_alike(site: Site) -> None:
    """In the language of whoever reads it, and nothing that was typed but the name is on the page."""
    member(site)
    texts = []
    for name in ("ana", "nobody"):
        answer = newcomer(site).post("/horizon/login", data={"name": name, "password": "wrong secret"})
        assert answer.status_code == 401
        assert "wrong secret" not in answer.text
        texts.append(paper(answer, 401).text)
    assert texts[0] == texts[1]
    form = {"name": "ana", "password": "wrong secret"}
    spanish = newcomer(site).post("/horizon/login", data=form, headers={"Accept-Language": "es"})
    assert "Este nombre y esta contraseña no van juntos." in spanish.text


def test_who_tries_too_often_is_told_how_long_to_wait(site: Site) -> None:
    """The form says so, with the header that programs read."""
    member(site)
    browser = newcomer(site)
    answers = [browser.post("/horizon/login", data={"name": "ana", "password": "wrong"}) for _ in range(7)]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "Wait " in paper(answers[-1], 429).text


def test_a_browser_in_which_somebody_logged_in_lets_them_in_whoever_guesses(site: Site) -> None:
    """From the same address, at which others wait; by a cookie that stays after logging out, and lets nobody in."""
    member(site)
    browser, right, wrong = newcomer(site), {"name": "ana", "password": PASSWORD}, {"name": "ana", "password": "wrong"}
    browser.post("/horizon/login", data=right)
    kept = browser.cookies[BROWSER_COOKIE]
    press(browser, paper(browser.get("/horizon")).form("/logout"))
    assert (browser.cookies.get(LOGIN_COOKIE), browser.cookies[BROWSER_COOKIE]) == (None, kept)
    assert browser.get("/horizon").status_code == 401
    stranger = newcomer(site)
    assert stranger.post("/horizon/login", data=wrong).status_code == 401
    site.world.query("UPDATE testigo.login_try SET next_at = next_at + interval '1 hour'")
    assert stranger.post("/horizon/login", data=right).status_code == 429
    assert browser.post("/horizon/login", data=right).status_code == 303


def test_a_link_logs_in_once_and_not_by_being_opened(site: Site) -> None:
    """Whatever fetches addresses ahead uses up nothing."""
    secret = Secret.new()
    site.db.run(make_link, "local", secret.digest, action=site.world.action())
    browser = newcomer(site)
    address = f"/horizon/login?link={secret.text}"
    browser.get(address)
    asked = paper(browser.get(address))
    answer = press(browser, asked.form("/login"))
    assert answer.status_code == 303
    assert "local admin" in paper(browser.get("/horizon")).text
    assert press(newcomer(site), asked.form("/login")).status_code == 401


def test_logging_out_ends_the_login_itself(site: Site) -> None:
    """The cookie is of no more use, to whoever kept it."""
    browser = plain_browser(site, Role.VIEWER)
    kept = browser.cookies[LOGIN_COOKIE]
    page = paper(browser.get("/horizon"))
    assert press(browser, page.form("/logout")).status_code == 303
    assert site.client({}, {LOGIN_COOKIE: kept}).get("/horizon").status_code == 401


def test_looks_are_kept_by_the_browser_and_drawn_by_the_server(site: Site) -> None:
    """Theme, language, times and shortcuts are in the page as it is sent: nothing changes after it is drawn."""
    browser = plain_browser(site, Role.VIEWER)
    form = next(each for each in paper(browser.get("/horizon/settings")).forms if ("zone", "") in each.fields[2:])
    chosen = {"theme": "dark", "language": "es", "times": "local", "zone": "Europe/Madrid", "keys": "off"}
    answer = press(browser, form, **chosen)
    assert (answer.status_code, answer.headers["location"]) == (303, "/horizon/settings")
    page = paper(browser.get("/horizon/workers"))
    assert ("html", {"lang": "es", "data-theme": "dark"}) in page.elements
    (body,) = [given for tag, given in page.elements if tag == "body"]
    assert body["data-zone"] == "Europe/Madrid"
    assert "data-keys" not in body


def test_local_times_without_a_zone_are_asked_for(site: Site) -> None:
    """Without a script the switch in the frame cannot know the browser's zone; the settings ask for it."""
    browser = plain_browser(site, Role.VIEWER)
    switch = paper(browser.get("/horizon/queues")).form("/looks")
    assert press(browser, switch, times="local").headers["location"] == "/horizon/settings#times"
    again = press(browser, switch, times="local", zone="Europe/Madrid")
    assert again.headers["location"] == "/horizon/queues"
    assert "Local" in paper(browser.get("/horizon/queues")).text


def test_the_cookie_of_looks_is_read_as_far_as_it_says_something() -> None:
    """It is written by whoever likes to, and holds no secret."""
    assert Looks.of(None) == Looks.of("") == Looks.of("theme=purple&language=xx&zone=Mars&keys=&%%%") == Looks()
    assert Looks.of("theme=dark&times=local") == Looks(theme="dark"), "local times need a zone"
    looks = Looks("light", "es", "Europe/Madrid", local=True, keys=False)
    assert Looks.of(looks.cookie) == looks
    assert looks.but({"language": ""}) == Looks("light", None, "Europe/Madrid", local=True, keys=False)
    assert Looks.of("zone=../../etc/passwd&times=local") == Looks()
    assert "Europe/Madrid" in zones()


def test_times_spans_and_sizes_are_written_for_people() -> None:
    """In the zone and language of whoever looks; the exact time is at hand."""
    now = datetime(2026, 11, 30, 23, 30, 5, tzinfo=UTC)
    madrid = Written(words_in("es"), Looks(zone="Europe/Madrid", local=True), now)
    assert ">00:30:05</time>" in madrid.when(now)
    assert 'datetime="2026-11-30T23:30:05Z"' in madrid.when(now)
    assert 'title="2026-12-01 00:30:05 CET"' in madrid.when(now)
    plain = Written(words_in("en"), Looks(), now)
    assert ">23:30:05</time>" in plain.when(now)
    assert ">2026-11-29 23:30:05</time>" in plain.when(now - timedelta(days=1))
    assert [plain.span(each) for each in (0, 0.0123, 1.24, 41, 840, 7_200, 200_000, None)] == [
        "0\u00a0s", "12\u00a0ms", "1.2\u00a0s", "41\u00a0s", "14\u00a0m", "2\u00a0h", "2\u00a0d", "\u2013",
    ]  # fmt: skip
    assert ">in 2\u00a0m</time>" in plain.ago(now + timedelta(minutes=2))
    assert [plain.size(each) for each in (0, 999, 4_100, 262_144, 3_000_000_000)] == [
        "0\u00a0B", "999\u00a0B", "4.1\u00a0kB", "262\u00a0kB", "3.0\u00a0GB",
    ]  # fmt: skip
    assert [plain.rate(each) for each in (0, 0.02, 0.44, 41.7, None)] == ["0", "<\u00a00.1", "0.4", "42", "\u2013"]
    assert madrid.percent(0.0081) == "0,8\u00a0%"


def test_the_language_is_the_browsers_until_one_is_chosen(site: Site) -> None:
    """Pages, refusals and the login speak it."""
    browser = plain_browser(site, Role.VIEWER)
    browser.headers["Accept-Language"] = "es-AR,es;q=0.8"
    answer = browser.get("/horizon")
    assert answer.headers["content-language"] == "es"
    assert "Resumen" in paper(answer).text
    assert "No encontrado" in paper(browser.get("/horizon/nowhere"), 404).text
    browser.cookies.set(COOKIE, "language=en")
    assert "Overview" in paper(browser.get("/horizon")).text
