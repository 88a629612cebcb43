"""What has failed is listed by its cause, and leaves the list when it is done again or forgotten."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import httpx
from sqlalchemy import Connection, event

from testigo.access.roles import Role
from testigo.authority.actions import Action
from testigo.authority.forget import forget
from testigo.authority.read import Filter, jobs
from testigo.authority.reprocess import reprocess
from testigo.rules.outcomes import Fail, Succeed
from testigo.web.panel.badge import Badge
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import failed, plain_browser
from tests.worker.kit import await_that


def test_failures_are_grouped_by_cause_the_largest_first(site: Site) -> None:
    """Messages that differ only in a long number are of one cause; the jobs of one cause are shown."""
    outage = [failed(site.world, outcome=Fail("HTTPError", f"502 of request {n}"))[0] for n in (1001, 2002, 3003)]
    (poison,) = failed(site.world, outcome=Fail("PayloadError", "cannot decode", permanent=True))
    viewer = site.as_(Role.OPERATOR)
    page = paper(viewer.get("/horizon/failed"))
    assert "4 open" in page.text
    assert page.text.index("HTTPError") < page.text.index("PayloadError")
    assert all(job in page.html for job in outage)
    assert f'value="{poison}"' not in page.html
    other = paper(viewer.get(page.link("PayloadError")))
    assert f'value="{poison}"' in other.html
    assert not any(f'value="{job}"' in other.html for job in outage)
    assert "No failed job is open." in paper(viewer.get("/horizon/failed", params={"queue": "elsewhere"})).text


def test_all_of_a_cause_are_retried_and_leave_the_list(site: Site) -> None:
    """The question names how many, shows some, and needs a reason; the list empties as the new jobs succeed."""
    failed(site.world, 7)
    failed(site.world, outcome=Fail("Other", "else"))
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get(paper(browser.get("/horizon/failed")).link("Retry 7")))
    assert "Retry 7 jobs?" in asked.text
    assert "2 more are not shown." in asked.text
    form = asked.form("/operations/retry")
    assert "Say why." in paper(press(browser, form), 422).text
    answer = press(browser, form, reason="payments is back")
    assert answer.status_code == 303
    follows = answer.headers["location"]
    await_that(lambda: "7 done, 0 refused, 0 waiting" in paper(browser.get(follows)).text, "the operation's end")
    page = paper(browser.get("/horizon/failed"))
    assert "1 open" in page.text
    assert "7 being retried" in page.text
    worker = site.world.worker()
    worker.settle(*((lease, Succeed()) for lease in worker.claim(20).leases))
    assert "0 being retried" in paper(browser.get("/horizon/failed")).text


def test_some_are_chosen(site: Site) -> None:
    """Those that are ticked, and no others."""
    jobs = failed(site.world, 3)
    browser = plain_browser(site, Role.OPERATOR)
    page = paper(browser.get("/horizon/failed"))
    (retry,) = {address for form in page.forms for address in form.elsewhere if "retry" in address}
    asked = paper(browser.get(retry, params=[("id", jobs[0]), ("id", jobs[2])]))
    answer = press(browser, asked.form("/operations/retry"), reason="two of three")
    await_that(lambda: "2 done" in paper(browser.get(answer.headers["location"])).text, "the operation's end")
    rows = site.world.query("SELECT CAST(supersedes AS text) AS old FROM testigo.job WHERE supersedes IS NOT NULL")
    assert {row.old for row in rows} == {jobs[0], jobs[2]}


def test_a_viewer_sees_codes_and_no_messages(site: Site) -> None:
    """And no button that would be refused."""
    failed(site.world, outcome=Fail("HTTPError", "the token was s3cr3t", "detail s3cr3t"))
    page = paper(site.as_(Role.VIEWER).get("/horizon/failed"))
    assert "HTTPError" in page.text
    assert "s3cr3t" not in page.html
    assert "Retry" not in page.text


def test_a_page_that_nobody_linked_is_refused(site: Site) -> None:
    """By field."""
    viewer = site.as_(Role.VIEWER)
    for unfit in ("since=always", "cause=x", "queue=%00"):
        assert viewer.get(f"/horizon/failed?{unfit}").status_code == 422, unfit


def test_all_that_match_are_those_that_are_open(site: Site) -> None:
    """What is being retried already is not asked for again: the question names as many as the page."""
    jobs = failed(site.world, 3)
    failed(site.world, outcome=Fail("Other", "else"))
    site.db.run(reprocess, jobs[0], action=site.world.action())
    browser = plain_browser(site, Role.OPERATOR)
    page = paper(browser.get("/horizon/failed"))
    assert "3 open · 1 being retried" in page.text
    assert "Retry 3 jobs?" in paper(browser.get(page.link("Retry all that match"))).text


def test_how_many_are_open_stands_beside_the_page_s_name(site: Site) -> None:
    """On every page; what is done again, or gone, is not counted."""
    site.app.state.badge = Badge(0.0)
    operator = plain_browser(site, Role.OPERATOR)
    failed(site.world, 2)
    for path in ("/horizon", "/horizon/queues", "/horizon/failed"):
        assert paper(operator.get(path)).html.count('<b title="open failed jobs">2</b>') == 2
    (again, _) = site.db.run(jobs, Filter(unresolved=True)).items
    site.db.run(reprocess, again.id, action=Action("tester"))
    assert '<b title="open failed jobs">1</b>' in paper(operator.get("/horizon")).html
    (last,) = site.db.run(jobs, Filter(unresolved=True)).items
    site.db.run(forget, [last.id], "a test", action=Action("tester"))
    assert "open failed jobs" not in paper(operator.get("/horizon")).html


def test_nobody_waits_for_a_look_that_another_has_begun(site: Site) -> None:
    """However long it takes: a slow database is not asked for the same number by every page."""
    site.app.state.badge = Badge(0.0)
    first, second = site.as_(Role.VIEWER), site.as_(Role.OPERATOR)
    looks: list[str] = []

    @event.listens_for(site.app.state.door._database._engine.sync_engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "AS walked" in statement:
            looks.append(statement)

    def hold(c: Connection) -> Future[httpx.Response]:
        c.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        c.exec_driver_sql("LOCK TABLE testigo.job IN ACCESS EXCLUSIVE MODE")
        going = pool.submit(first.get, "/horizon/settings")
        await_that(lambda: looks, "the look of the first")
        assert second.get("/horizon/settings").status_code == 200
        return going

    with ThreadPoolExecutor(1) as pool:
        assert site.db.run(hold).result().status_code == 200
    assert len(looks) == 1


def test_however_many_ask_it_is_looked_at_once_a_second(site: Site) -> None:
    """By one server process: no page costs the count of another."""
    now = [0.0]
    site.app.state.badge = Badge(1.0, clock=lambda: now[0])
    viewer = site.as_(Role.VIEWER)
    for at, shown in ((0.0, 1), (0.9, 1), (1.0, 3), (1.9, 3)):
        now[0] = at
        failed(site.world)
        assert f'<b title="open failed jobs">{shown}</b>' in paper(viewer.get("/horizon")).html
