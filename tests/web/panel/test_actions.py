"""What is done to a job in the panel: asked for first, done once, by who may, and never to a job that has changed."""

from __future__ import annotations

import pytest

from testigo.access.roles import RIGHTS, Role
from testigo.authority.actions import JobId, new_id
from testigo.authority.read import job
from testigo.operations import Verb
from testigo.web.panel.verbs import ACTS
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import blocked, ended, failed, plain_browser, running


def for_verb(site: Site, verb: Verb) -> JobId:
    """A job to which this can be done."""
    match verb:
        case Verb.RETRY | Verb.FORGET:
            return failed(site.world, queue=str(verb))[0]
        case Verb.CANCEL:
            return site.world.submit(queue="elsewhere")[0]
        case Verb.UNBLOCK:
            return blocked(site.world, queue=str(verb))


def standing(site: Site, job_id: JobId) -> tuple[object, ...]:
    """How a job stands, as far as an action could change it."""
    rows = site.world.query("SELECT state, revision FROM testigo.job WHERE id = CAST(:id AS uuid)", id=job_id)
    jobs = site.world.query("SELECT count(*) AS n FROM testigo.job")
    return tuple(tuple(row) for row in [*rows, *jobs])


def audited(site: Site, what: str) -> list[tuple[str, str, str | None]]:
    """The rows of the audit of this command: who, how it ended, and by which code."""
    rows = site.world.query("SELECT actor, result, code FROM testigo.audit WHERE what = :what ORDER BY n", what=what)
    return [(row.actor, row.result, row.code) for row in rows]


def test_a_failed_job_is_found_understood_and_retried_without_a_script(site: Site) -> None:
    """From the page of failed jobs it is three steps: why, retry, yes; the new job tells where it came from."""
    (old,) = failed(site.world, tags=("order:881",))
    browser = plain_browser(site, Role.OPERATOR)
    listed = paper(browser.get("/horizon/failed"))
    assert "HTTPError 502 from payments" in listed.text
    shown = paper(browser.get(listed.link("Why?")))
    assert "It failed for good" in shown.text
    assert "because its failures have spent its attempts" in shown.text
    assert 'File "sync.py", line 3' in shown.text
    asked = paper(browser.get(shown.link("Retry")))
    assert "A new job with the same payload" in asked.text
    answer = press(browser, asked.form("/retry"), reason="payments is back")
    assert answer.status_code == 303
    made = paper(browser.get(answer.headers["location"]))
    new = site.world.query("SELECT id FROM testigo.job WHERE supersedes = CAST(:id AS uuid)", id=old)
    assert str(new[0].id) in made.text
    assert f"Submitted by user:operator, to take the place of {old}" in made.text
    assert "payments is back" in made.text
    assert audited(site, "jobs.retry") == [("user:operator", "done", None)]


def test_a_double_click_does_it_once(site: Site) -> None:
    """Both are answered alike, and there is one receipt, one new job and one row of the audit (field case R74)."""
    (old,) = failed(site.world)
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(f"/horizon/jobs/{old}/retry")).form("/retry")
    first, second = press(browser, form), press(browser, form)
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    action = dict(form.fields)["action_id"]
    receipts = site.world.query("SELECT FROM testigo.receipt WHERE action = :action", action=action)
    assert len(receipts) == 1
    assert len(site.world.query("SELECT FROM testigo.job")) == 2
    assert audited(site, "jobs.retry") == [("user:operator", "done", None)]


def test_the_same_order_with_another_reason_is_another_order(site: Site) -> None:
    """Whoever changes what a form says and sends it under the old action is refused."""
    (old,) = failed(site.world)
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(f"/horizon/jobs/{old}/retry")).form("/retry")
    press(browser, form, reason="first")
    assert "ACTION_ID_COLLISION" in paper(press(browser, form, reason="second"), 409).text


def test_a_job_that_has_changed_is_left_alone_and_shown_as_it_is(site: Site) -> None:
    """What was asked for stands beside how the job is now, and the refusal is in the audit."""
    (waiting,) = site.world.submit()
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(f"/horizon/jobs/{waiting}/cancel")).form("/cancel")
    worker = site.world.worker("host-b/2")
    worker.take()
    answer = paper(press(browser, form, reason="not needed"), 409)
    assert "Nothing was done." in answer.text
    assert "The job is no longer as you saw it." in answer.text
    asked, now = answer.text.split("How the job is now")
    assert "ready" in asked
    assert "not needed" in asked
    assert "running" in now
    assert site.world.state(waiting) == "running"
    assert audited(site, "jobs.cancel") == [("user:operator", "refused", "REVISION_MISMATCH")]
    again = paper(browser.get(answer.link("Cancel")))
    assert dict(again.form("/cancel").fields)["reason"] == "not needed"


def test_what_destroys_needs_a_reason(site: Site) -> None:
    """Without one the question is asked again, with what was typed and under the same action."""
    (waiting,) = site.world.submit()
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(f"/horizon/jobs/{waiting}/cancel")).form("/cancel")
    asked = paper(press(browser, form, reason="   "), 422)
    assert "Say why." in asked.text
    assert dict(asked.form("/cancel").fields)["action_id"] == dict(form.fields)["action_id"]
    assert site.world.state(waiting) == "ready"


def test_a_cancel_of_what_runs_is_a_request(site: Site) -> None:
    """The page says so before, and tells of it after."""
    lease, _ = running(site.world)
    job_id = lease.job_id
    browser = plain_browser(site, Role.OPERATOR)
    asked = paper(browser.get(f"/horizon/jobs/{job_id}/cancel"))
    assert "it is asked to stop" in asked.text
    answer = press(browser, asked.form("/cancel"), reason="wrong input")
    shown = paper(browser.get(answer.headers["location"]))
    assert "Cancel requested by user:operator" in shown.text
    assert site.world.state(job_id) == "cancelling"


def test_a_blocked_job_is_unblocked(site: Site) -> None:
    """It is ready again, and its history says by whom."""
    job_id = blocked(site.world)
    browser = plain_browser(site, Role.OPERATOR)
    assert (
        "It is blocked: a template is missing. It needs template 7."
        in paper(browser.get(f"/horizon/jobs/{job_id}")).text
    )
    form = paper(browser.get(f"/horizon/jobs/{job_id}/unblock")).form("/unblock")
    answer = press(browser, form)
    assert "Unblocked by user:operator" in paper(browser.get(answer.headers["location"])).text
    assert site.world.state(job_id) == "ready"


def test_a_forgotten_job_leaves_its_tombstone(site: Site) -> None:
    """Its page tells who forgot it and why."""
    (job_id,) = failed(site.world)
    browser = plain_browser(site, Role.ADMIN)
    form = paper(browser.get(f"/horizon/jobs/{job_id}/forget")).form("/forget")
    answer = press(browser, form, reason="a test run")
    gone = paper(browser.get(answer.headers["location"]), 404)
    assert "user:admin" in gone.text
    assert "a test run" in gone.text


def test_what_does_not_apply_is_not_asked(site: Site) -> None:
    """A job that has ended shows how it is, and nothing is offered that would be refused."""
    (job_id,) = ended(site.world, 1)
    browser = plain_browser(site, Role.OPERATOR)
    for verb in (Verb.CANCEL, Verb.UNBLOCK):
        assert f"/{verb}" not in browser.get(f"/horizon/jobs/{job_id}").text
        assert "Nothing was done." in paper(browser.get(f"/horizon/jobs/{job_id}/{verb}"), 409).text


@pytest.mark.parametrize("role", list(Role))
def test_each_role_does_what_it_may_and_nothing_else(site: Site, role: Role) -> None:
    """By direct request, past all buttons: whoever may not is refused, and nothing is changed (field case R75)."""
    client = site.as_(role)
    shown = {}
    for verb in Verb:
        job_id = for_verb(site, verb)
        before = standing(site, job_id)
        seen = site.db.run(job, job_id)
        sent = {"action_id": new_id(), "revision": str(seen.revision), "reason": "the matrix"}
        asked = client.get(f"/horizon/jobs/{job_id}/{verb}")
        done = client.post(f"/horizon/jobs/{job_id}/{verb}", data=sent)
        shown[verb] = f'/horizon/jobs/{job_id}/{verb}"' in client.get(f"/horizon/jobs/{job_id}").text
        allowed = ACTS[verb].right in RIGHTS[role]
        assert (asked.status_code, done.status_code) == ((200, 303) if allowed else (403, 403)), verb
        assert (standing(site, job_id) == before) is not allowed, verb
    may = {verb for verb, act in ACTS.items() if act.right in RIGHTS[role]}
    assert not {verb for verb, visible in shown.items() if visible} - may


def test_what_a_page_did_not_send_changes_nothing(site: Site) -> None:
    """Without the form's token, from another site, from nowhere, or by GET (field case R74)."""
    (job_id,) = site.world.submit()
    site.as_(Role.ADMIN)
    cookies = {LOGIN_COOKIE: site.secrets[Role.ADMIN].text}
    ours = site.client({"Origin": site.url}, cookies)
    sent = dict(paper(ours.get(f"/horizon/jobs/{job_id}/cancel")).form("/cancel").fields) | {"reason": "forged"}
    before = standing(site, job_id)
    address = f"/horizon/jobs/{job_id}/cancel"
    tokenless = {name: value for name, value in sent.items() if name != "csrf"}
    assert ours.post(address, data=tokenless).status_code == 403
    assert ours.post(address, data=sent | {"csrf": "0" * 64}).status_code == 403
    assert site.client({"Origin": "https://elsewhere.example"}, cookies).post(address, data=sent).status_code == 403
    assert site.client({"Origin": "null"}, cookies).post(address, data=sent).status_code == 403
    assert site.client({}, cookies).post(address, data=sent).status_code == 403
    assert ours.get(address, params=sent).status_code == 200
    assert ours.get("/horizon/operations/cancel", params={**sent, "id": job_id}).status_code in (404, 405, 422)
    assert standing(site, job_id) == before
    assert ours.post(address, data=sent).status_code == 303


UNMEANT: list[dict[str, str]] = [
    {"action_id": "x", "revision": "1", "reason": "r"},
    {"action_id": "", "revision": "1", "reason": "r"},
    {"revision": "1", "reason": "r"},
    {"action_id": new_id(), "revision": "one", "reason": "r"},
    {"action_id": new_id(), "reason": "r"},
    {"action_id": new_id(), "revision": "-1", "reason": "r"},
    {"action_id": new_id(), "revision": "1" * 30, "reason": "r"},
    {"action_id": new_id(), "revision": "1", "reason": "r" * 1_001},
]
"""Forms that no page has."""


def test_a_form_that_no_page_has_is_refused(site: Site) -> None:
    """By field, and nothing is changed."""
    (job_id,) = site.world.submit()
    before, client = standing(site, job_id), site.as_(Role.ADMIN)
    answers = [client.post(f"/horizon/jobs/{job_id}/cancel", data=sent).status_code for sent in UNMEANT]
    assert answers == [422] * len(UNMEANT)
    assert standing(site, job_id) == before
