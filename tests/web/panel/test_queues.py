"""Queues and kinds: what waits, how fast it goes, and pausing them without a script."""

from __future__ import annotations

import pytest

from testigo.access.roles import Role
from testigo.authority.read.queues import oldest_ready, paused, queue
from testigo.errors import NotFound
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser

MARKUP = "<script>alert(1)</script>\"'&/../?"


def held_back(site: Site) -> list[tuple[str, str, str, str]]:
    """What is paused: of which scope, by whom and why."""
    return [(str(each.scope), each.name, each.actor, each.note) for each in site.db.run(paused).items]


@pytest.mark.parametrize(("nouns", "scope"), [("queues", "queue"), ("kinds", "kind")])
def test_a_queue_and_a_kind_are_paused_and_resumed_without_a_script(site: Site, nouns: str, scope: str) -> None:
    """Asked for first, with a reason that the pause and the audit keep; the result is said, and focused."""
    site.world.submit(queue="media", kind="media")
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get(paper(browser.get(f"/horizon/{nouns}")).link("Pause")))
    assert f"Pause the {scope} media?" in asked.text
    assert held_back(site) == [], "to open the page that asks changes nothing"
    answer = press(browser, asked.form("/pause"), reason="the disk is full")
    assert answer.status_code == 303
    assert held_back(site) == [(scope, "media", "user:operator", "the disk is full")]
    shown = paper(browser.get(answer.headers["location"]))
    assert " is paused" in shown.text
    assert [tag for tag, given in shown.elements if "autofocus" in given] == ["h1"]
    asked = paper(browser.get(shown.link("Resume")))
    assert press(browser, asked.form("/resume")).status_code == 303
    assert held_back(site) == []
    rows = site.world.query("SELECT what, objects, reason, result FROM testigo.audit ORDER BY n")
    assert [(row.what, list(row.objects), row.reason, row.result) for row in rows] == [
        (f"{nouns}.pause", [f"{scope}:media"], "the disk is full", "done"),
        (f"{nouns}.resume", [f"{scope}:media"], "", "done"),
    ]


def test_a_form_that_is_sent_twice_pauses_once(site: Site) -> None:
    """After a resume, a second click of the old form does not pause again."""
    site.world.submit(queue="media")
    browser = plain_browser(site, Role.OPERATOR)
    pause = paper(browser.get("/horizon/queues/pause?name=media")).form("/pause")
    press(browser, pause)
    press(browser, paper(browser.get("/horizon/queues/resume?name=media")).form("/resume"))
    assert press(browser, pause).status_code == 303
    assert held_back(site) == []


@pytest.mark.parametrize("path", ["queues/pause", "queues/resume", "kinds/pause", "kinds/resume"])
def test_a_viewer_is_neither_asked_nor_obeyed(site: Site, path: str) -> None:
    """The buttons are not there, the page that asks is refused, and so is the form."""
    site.world.submit(queue="media", kind="media")
    browser = plain_browser(site, Role.VIEWER)
    page = paper(browser.get(f"/horizon/{path.partition('/')[0]}"))
    assert not [said for said in page.links if "Pause" in said]
    assert browser.get(f"/horizon/{path}?name=media").status_code == 403
    form = paper(plain_browser(site, Role.OPERATOR).get(f"/horizon/{path}?name=media")).form(path.partition("/")[2])
    csrf = dict(paper(browser.get("/horizon")).form("/logout").fields)["csrf"]
    assert press(browser, form, csrf=csrf).status_code == 403
    assert held_back(site) == []


def test_a_queue_is_shown_with_what_waits_and_who_serves_it(site: Site) -> None:
    """One with a worker is well; one without says so, and how to start one."""
    site.world.submit(queue="served")
    site.world.submit(queue="lonely")
    site.world.worker("host-a/17", queues=("served",))
    browser = plain_browser(site, Role.VIEWER)
    served = paper(browser.get("/horizon/queues/show?name=served"))
    assert "Queue served ok" in served.text
    assert served.link("host-a/17").startswith("/horizon/workers/show?session=")
    lonely = paper(browser.get("/horizon/queues/show?name=lonely"))
    assert "Jobs wait here, and no open session lists this queue." in lonely.text
    assert browser.get("/horizon/queues/show?name=nowhere").status_code == 404


def test_a_name_may_be_anything(site: Site) -> None:
    """Whatever a queue is called, its page is found, its text is text, and it can be paused."""
    site.world.submit(queue=MARKUP, kind=MARKUP)
    browser = plain_browser(site, Role.OPERATOR)
    listed = paper(browser.get("/horizon/queues"))
    answer = browser.get(listed.link(MARKUP))
    shown = paper(answer)
    assert f"Queue {MARKUP}" in shown.text
    assert "<script>alert" not in answer.text
    asked = paper(browser.get(shown.link("Pause")))
    assert press(browser, asked.form("/pause")).status_code == 303
    assert held_back(site) == [("queue", MARKUP, "user:operator", "")]
    assert "<script>alert" not in browser.get("/horizon/kinds").text


def test_more_queues_than_a_page_holds(site: Site) -> None:
    """The next page begins where this one ends, and leads back to the start."""
    for n in range(53):
        site.world.submit(queue=f"q{n:02}")
    browser = plain_browser(site, Role.VIEWER)
    first = paper(browser.get("/horizon/queues"))
    assert "q49" in first.text
    assert "q50" not in first.text
    second = paper(browser.get(first.link("Further")))
    assert "q52" in second.text
    assert second.link("From the start") == "/horizon/queues"
    assert browser.get("/horizon/queues?after=nonsense").status_code == 422


def test_the_oldest_of_each_queue_is_found_behind_more_urgent_ones(site: Site) -> None:
    """The index has priorities first: the oldest is looked for within each."""
    site.world.submit(queue="a", priority=10)
    site.world.submit(queue="a", priority=0)
    site.world.submit(queue="b")
    rows = site.world.query("SELECT queue, min(ready_at) AS at FROM testigo.job GROUP BY queue")
    assert site.db.run(oldest_ready, ["a", "b", "c"]) == {row.queue: row.at for row in rows}
    assert site.db.run(oldest_ready, []) == {}


def test_one_queue_is_read_as_the_list_has_it(site: Site) -> None:
    """And of one that is not known nothing is made up."""
    site.world.submit(queue="a")
    site.world.submit(queue="ab")
    assert site.db.run(queue, "a").ready.n == 1
    with pytest.raises(NotFound):
        site.db.run(queue, "aa")
