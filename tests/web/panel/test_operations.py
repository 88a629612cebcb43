"""What is done to many jobs: the exact set is shown first, a reason is needed, and each job has its outcome."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from testigo.access.roles import RIGHTS, Right, Role
from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.submissions import NewJob
from testigo.operations import OperationId, Selection, Verb, begin
from testigo.settings import LIMITS
from testigo.web.panel.verbs import ACTS
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import ended, failed, plain_browser
from tests.worker.kit import await_that


def follow(site: Site, address: str, until: str) -> str:
    """The text of an operation's page, once it says so."""
    client = site.as_(Role.VIEWER)
    await_that(lambda: until in paper(client.get(address)).text, until)
    return paper(client.get(address)).text


def audited(site: Site, what: str) -> list[tuple[str, str, str | None]]:
    """The rows of the audit of this command: who, how it ended, and by which code."""
    rows = site.world.query("SELECT actor, result, code FROM testigo.audit WHERE what = :what ORDER BY n", what=what)
    return [(row.actor, row.result, row.code) for row in rows]


def test_all_that_match_are_cancelled_and_none_that_came_later(site: Site) -> None:
    """The page names how many, by which search, shows five, and what will happen; later ones are not in it."""
    before = site.world.submit(*[NewJob(kind="work", queue="mail") for _ in range(8)])
    other = site.world.submit(NewJob(kind="work", queue="reports"))
    browser = plain_browser(site, Role.OPERATOR)
    listed = paper(browser.get("/horizon/jobs", params={"q": "queue:mail"}))
    choices = paper(browser.get(listed.link("All that match")))
    assert "Retry: none of them qualifies" in choices.text
    asked = paper(browser.get(choices.link("Cancel 8 jobs")))
    for said in ("Cancel 8 jobs?", "queue:mail", "3 more are not shown.", "Those that wait end at once."):
        assert said in asked.text, said
    assert asked.html.count("/horizon/jobs/0") >= 5
    after = site.world.submit(NewJob(kind="work", queue="mail"))
    form = asked.form("/operations/cancel")
    assert "Say why." in paper(press(browser, form), 422).text
    first, second = (press(browser, form, reason="wrong list") for _ in range(2))
    assert first.headers["location"] == second.headers["location"]
    text = follow(site, first.headers["location"], "8 done, 0 refused, 0 waiting, of 8.")
    assert "wrong list" in text
    assert {site.world.state(job) for job in before} == {"cancelled"}
    assert {site.world.state(job) for job in (*other, *after)} == {"ready"}
    assert audited(site, "operations.cancel") == [("user:operator", "done", None)]
    assert "8 jobs" in paper(browser.get("/horizon/operations")).text


def test_each_job_has_its_outcome(site: Site) -> None:
    """One that ended meanwhile is refused with its code, and can be listed alone."""
    jobs = site.world.submit(*[NewJob(kind="work", queue="q") for _ in range(3)])
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get("/horizon/operations/cancel/confirm", params=[("id", job) for job in jobs]))
    worker = site.world.worker()
    worker.succeed(worker.take())
    answer = press(browser, asked.form("/operations/cancel"), reason="cleaning")
    page = answer.headers["location"]
    follow(site, page, "0 waiting, of")
    done = [job for job in jobs if site.world.state(job) == "cancelled"]
    assert len(done) == 2
    alone = paper(browser.get(page, params={"outcome": "done"}))
    assert all(job in alone.html for job in done)


def test_more_jobs_than_a_preview_looks_at_are_told_and_meant(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever confirms is told that those are meant as well which were too many to count for a page."""
    jobs = site.world.submit(*[NewJob(kind="work", queue="mail") for _ in range(3)])
    site.world.submit(*[NewJob(kind="work", queue="other") for _ in range(2)])
    monkeypatch.setattr(sys.modules["testigo.operations.begin"], "LIMITS", replace(LIMITS, walk_rows=2))
    browser = plain_browser(site, Role.OPERATOR)
    choices = paper(browser.get("/horizon/operations/choose", params={"q": "after:any queue:mail"}))
    asked = paper(browser.get(choices.link("Cancel 0+ jobs")))
    assert "Older jobs that match are counted when it begins, and are meant as well." in asked.text
    answer = press(browser, asked.form("/operations/cancel"), reason="wrong list")
    follow(site, answer.headers["location"], "3 done, 0 refused, 0 waiting, of 3.")
    assert {site.world.state(job) for job in jobs} == {"cancelled"}


def test_a_retry_tells_what_became_of_the_new_job(site: Site) -> None:
    """Not that the old one failed, which is why it was done again: from its page one sees that it succeeded."""
    jobs = failed(site.world, 2)
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get("/horizon/operations/retry/confirm", params=[("id", job) for job in jobs]))
    page = press(browser, asked.form("/operations/retry"), reason="it is back").headers["location"]
    follow(site, page, "2 done, 0 refused, 0 waiting, of 2.")
    worker = site.world.worker()
    for _ in jobs:
        worker.succeed(worker.take())
    items = paper(browser.get(page)).text.partition("What became of each job")[2]
    assert items.count("succeeded") == len(jobs)
    assert "permanent failure" not in items


def test_what_does_not_qualify_is_left_out_and_said_so(site: Site) -> None:
    """Of what was ticked; where nothing is left there is nothing to confirm."""
    bad, good = failed(site.world, 2), ended(site.world, 1, queue="other")
    waiting = site.world.submit(run_at=datetime.now(UTC) + timedelta(days=1))
    browser = plain_browser(site, Role.OPERATOR)
    address = "/horizon/operations/retry/confirm"
    asked = paper(browser.get(address, params=[("id", job) for job in [*bad, *waiting]]))
    assert "Retry 2 jobs?" in asked.text
    assert "1 chosen job does not qualify" in asked.text
    nothing = paper(browser.get("/horizon/operations/cancel/confirm", params=[("id", job) for job in good]))
    assert "None of these jobs qualifies." in nothing.text
    assert browser.get(address).status_code == 422
    assert browser.get(address, params={"id": "x"}).status_code == 422


def test_a_stop_is_answered_however_far_the_operation_is(site: Site) -> None:
    """It has one row in the audit, however often it is sent; what was stopped says by whom."""
    jobs = site.world.submit(*[NewJob(kind="work", queue="q") for _ in range(3)])
    name = paused_operation(site, jobs)
    client = site.as_(Role.OPERATOR)
    sent = {"action_id": new_id()}
    answers = [client.post(f"/horizon/operations/{name}/stop", data=sent).status_code for _ in range(2)]
    assert answers == [303, 303]
    text = paper(client.get(f"/horizon/operations/{name}")).text
    assert "3 done" in text or "Stopped by user:operator: the rest is left as it was." in text
    assert "Stop " not in text
    assert len(audited(site, "operations.stop")) == 1


def test_an_operation_of_who_may_not_do_it_any_more_says_why_it_was_stopped(site: Site) -> None:
    """In words of the page, with those of the refusal; and so does one that a fault holds up."""
    name = OperationId(new_id())
    chosen = Selection(ids=tuple(site.world.submit()))
    action = Action("user:viewer")
    site.as_(Role.VIEWER)
    site.db.run(begin, Verb.CANCEL, chosen, reason="a test", action=action, operation_id=name)
    address = f"/horizon/operations/{name}"
    text = follow(site, address, "Stopped, for who began it may not do that any more")
    assert "The role viewer has no right to cancel" in text
    told = site.program(Role.VIEWER).get(f"/api/v1/operations/{name}").json()
    assert (told["state"], told["stopped_by"]) == ("stopped", None)
    assert told["hindrance"] in text
    hindered = "state = 'running', ended_at = NULL, hindrance = 'a fault', next_at = now() + interval '1 day'"
    site.world.query(f"UPDATE testigo.operation SET {hindered} RETURNING 1")
    page = paper(plain_browser(site, Role.VIEWER).get(address))
    assert "The last step failed; it is done again, later and later: a fault" in page.text
    browser = plain_browser(site, Role.VIEWER)
    browser.headers["Accept-Language"] = "es"
    spanish = paper(browser.get(address))
    assert "El último paso falló; se repite, cada vez más tarde: a fault" in spanish.text
    assert "<title>Cancelar 1 trabajo · " in spanish.html


def paused_operation(site: Site, jobs: list[JobId]) -> OperationId:
    """An operation that the servers may have begun to do."""
    name = OperationId(new_id())
    chosen = Selection(ids=tuple(jobs))
    site.db.run(begin, Verb.CANCEL, chosen, reason="a test", action=Action("tester"), operation_id=name)
    return name


def test_each_role_begins_and_stops_what_it_may_and_nothing_else(site: Site) -> None:
    """By direct request, past all buttons; whoever may not is refused and nothing is begun."""
    for role in Role:
        client = site.as_(role)
        for verb, act in ACTS.items():
            begun = site.world.query("SELECT count(*) AS n FROM testigo.operation")[0].n
            (job,) = failed(site.world, queue=f"{role}-{verb}")
            sent = {"action_id": new_id(), "id": job, "reason": "the matrix"}
            allowed = act.right in RIGHTS[role]
            asked = client.get(f"/horizon/operations/{verb}/confirm", params={"id": job})
            done = client.post(f"/horizon/operations/{verb}", data=sent)
            expected = (200, 303) if allowed else (403, 403)
            assert (asked.status_code, done.status_code) == expected, (role, verb)
            now = site.world.query("SELECT count(*) AS n FROM testigo.operation")[0].n
            assert now == begun + allowed, (role, verb)
            if allowed:
                follow(site, done.headers["location"], "0 waiting, of")
        name = paused_operation(site, site.world.submit())
        stopped = client.post(f"/horizon/operations/{name}/stop", data={"action_id": new_id()})
        assert stopped.status_code == (303 if Right.CANCEL in RIGHTS[role] else 403), role


def test_whoever_may_not_forget_cannot_stop_a_forgetting(site: Site) -> None:
    """A stop needs the right that the operation needed."""
    name = OperationId(new_id())
    chosen = Selection(ids=tuple(failed(site.world)))
    site.db.run(begin, Verb.FORGET, chosen, reason="a test", action=Action("tester"), operation_id=name)
    sent = {"action_id": new_id()}
    assert site.as_(Role.OPERATOR).post(f"/horizon/operations/{name}/stop", data=sent).status_code == 403
    assert site.as_(Role.ADMIN).post(f"/horizon/operations/{name}/stop", data=sent).status_code == 303
