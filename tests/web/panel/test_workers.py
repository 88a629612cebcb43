"""Workers: what each runs now, and letting one finish without a script."""

from __future__ import annotations

from testigo.access.roles import Role
from testigo.authority.read.held import held_by
from testigo.authority.read.sessions import session
from testigo.authority.sessions import close_session
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser, running

MARKUP = "<script>alert(1)</script>\"'&/../#?"


def test_no_worker_says_how_to_start_one(site: Site) -> None:
    """An empty list teaches."""
    page = paper(plain_browser(site, Role.VIEWER).get("/horizon/workers"))
    assert "No worker. Jobs wait until one runs. Start it with: testigo worker module:app" in page.text


def test_a_worker_is_shown_with_what_it_runs(site: Site) -> None:
    """In the list and on its own page, each with a way to the job."""
    lease, worker = running(site.world, agent="host-a/17")
    browser = plain_browser(site, Role.VIEWER)
    listed = paper(browser.get("/horizon/workers"))
    assert "host-a/17 open" in listed.text
    shown = paper(browser.get(listed.link("host-a/17")))
    assert "Holds 1 job" in shown.text
    assert lease.job_id in "".join(shown.links.values())
    assert worker.id in shown.text


def test_those_that_are_over_are_listed_by_how_they_ended(site: Site) -> None:
    """And not among those that live."""
    site.world.worker("alive")
    over = site.world.worker("over")
    site.db.run(close_session, over.id)
    browser = plain_browser(site, Role.VIEWER)
    assert "over" not in paper(browser.get("/horizon/workers")).links
    closed = paper(browser.get("/horizon/workers?state=closed"))
    assert "over" in closed.links
    assert "alive" not in closed.links
    assert browser.get("/horizon/workers?state=asleep").status_code == 422
    assert browser.get("/horizon/workers/show?session=nonsense").status_code == 422
    gone = "0197f3c2-a1b4-7000-8000-000000000000"
    assert browser.get(f"/horizon/workers/show?session={gone}").status_code == 404


def test_a_worker_is_drained_without_a_script(site: Site) -> None:
    """It is asked whether it is meant, with what the worker holds; then it is said, and written down."""
    _, worker = running(site.world, agent="host-a/17")
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get(paper(browser.get("/horizon/workers")).link("Drain")))
    assert "Drain the worker host-a/17?" in asked.text
    assert "It holds 1 job, finishes it, and ends." in asked.text
    assert site.db.run(session, worker.id).state == "open"
    answer = press(browser, asked.form("/drain"), reason="a new release")
    assert site.db.run(session, worker.id).state == "draining"
    shown = paper(browser.get(answer.headers["location"]))
    assert "The worker is asked to finish" in shown.text
    assert "Drain…" not in shown.links
    (row,) = site.world.query("SELECT actor, what, objects, reason FROM testigo.audit")
    assert (row.actor, row.what, list(row.objects)) == ("user:operator", "workers.drain", [f"session:{worker.id}"])


def test_a_viewer_drains_nobody(site: Site) -> None:
    """Neither by the page nor past it."""
    _, worker = running(site.world, agent="host-a/17")
    browser = plain_browser(site, Role.VIEWER)
    assert "Drain…" not in paper(browser.get("/horizon/workers")).links
    assert browser.get(f"/horizon/workers/drain?session={worker.id}").status_code == 403
    csrf = dict(paper(browser.get("/horizon")).form("/logout").fields)["csrf"]
    data = {"csrf": csrf, "session": worker.id, "action_id": "x"}
    assert browser.post("/horizon/workers/drain", data=data).status_code == 403
    assert site.db.run(session, worker.id).state == "open"


def test_a_workers_name_may_be_anything(site: Site) -> None:
    """It is text, on each page that has it."""
    worker = site.world.worker(MARKUP, queues=(MARKUP,), kinds=(MARKUP,))
    browser = plain_browser(site, Role.OPERATOR)
    for path in ("workers", f"workers/show?session={worker.id}", f"workers/drain?session={worker.id}"):
        answer = browser.get(f"/horizon/{path}")
        assert MARKUP in paper(answer).text
        assert "<script>alert" not in answer.text


def test_what_is_held_is_in_the_order_in_which_it_was_granted_and_bounded(site: Site) -> None:
    """Of each session so many; one that holds nothing is there as well."""
    idle, busy = site.world.worker("idle"), site.world.worker("busy")
    site.world.submit()
    first = busy.take()
    site.world.submit()
    second = busy.take()
    held = site.db.run(held_by, [idle.id, busy.id])
    assert [job.id for job in held[busy.id]] == [first.job_id, second.job_id]
    assert held[idle.id] == ()
    assert len(site.db.run(held_by, [busy.id], limit=1)[busy.id]) == 1
    assert site.db.run(held_by, []) == {}
