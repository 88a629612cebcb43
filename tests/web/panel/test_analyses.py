"""Analyses in the panel: three outcomes apart, coverage with reasons, cancelled by who may (spec D-20, D-21, D-24)."""

from __future__ import annotations

from testigo.access.roles import RIGHTS, Right, Role
from testigo.authority.actions import new_id
from testigo.evidence.listing import analysis
from testigo.rules.evidence.coverage import Coverage, Outcome, Uncovered
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found, going, sealed
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier, several
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser
from tests.web.panel.test_actions import audited


def test_the_list_leads_from_the_newest_to_each(site: Site) -> None:
    """With evidence, gate and findings by severity; of all projects or one."""
    assert "Nothing was analysed yet." in paper(site.as_(Role.VIEWER).get("/horizon/analyses")).text
    first, other = dossier(site, *several(5)), dossier(site, found("b", Severity.LOW), project="billing")
    browser = plain_browser(site, Role.VIEWER)
    page = paper(browser.get("/horizon/analyses"))
    assert page.link("shop #1") == f"/horizon/analyses/{first}"
    assert page.text.index("billing #1") < page.text.index("shop #1")
    only = paper(browser.get("/horizon/analyses?project=billing"))
    assert f"/horizon/analyses/{other}" in only.html
    assert str(first) not in only.html
    assert browser.get("/horizon/analyses?after=nonsense").status_code == 422


def test_jobs_evidence_and_gate_are_three_outcomes(site: Site) -> None:
    """All jobs succeeded, the evidence is incomplete, and the gate says why in words (spec D-21, D-24)."""
    run = going(site.world, "ruff", "bandit", "semgrep")
    left = Coverage(10, 1, 1, (Uncovered("src/big.py", "larger than 1 MiB"),), (Uncovered("src/odd.py", "not UTF-8"),))
    run.publish(
        sealed(found("a"), coverage=left),
        sealed(part=1, analyser="bandit", outcome=Outcome.INCOMPLETE, reasons=("it ran out of time",)),
    )
    run.worker.succeed(run.lease)
    page = paper(plain_browser(site, Role.VIEWER).get(f"/horizon/analyses/{run.id}"))
    jobs, evidence, gate = (page.text.index(words) for words in ("Its jobs", "Its evidence", "Its gate"))
    assert "succeeded \u00d74" in page.text[jobs:evidence]
    assert "incomplete" in page.text[evidence:gate]
    for words in (
        "ruff skipped 1 file in scope.", "ruff could not analyse 1 file.", "bandit did not complete its work.",
        "semgrep left no result.", "src/big.py larger than 1 MiB", "src/odd.py not UTF-8", "it ran out of time",
        "No decision repairs missing coverage",
    ):  # fmt: skip
        assert words in page.text
    spanish = site.as_(Role.VIEWER).get(f"/horizon/analyses/{run.id}", headers={"Accept-Language": "es"})
    assert "semgrep no dejó resultado." in paper(spanish).text


def test_what_is_not_in_scope_is_told(site: Site) -> None:
    """By why, in words, and where it was not counted not at all (spec D-24)."""
    told = going(site.world, left_out={"link": 2, "repository": 1, "another": 3})
    page = paper(plain_browser(site, Role.VIEWER).get(f"/horizon/analyses/{told.id}"))
    assert "Not in scope 2 links, 1 repository within, 3 another" in page.text
    spanish = site.as_(Role.VIEWER).get(f"/horizon/analyses/{told.id}", headers={"Accept-Language": "es"})
    assert "2 enlaces" in paper(spanish).text
    page = paper(plain_browser(site, Role.VIEWER).get(f"/horizon/analyses/{going(site.world).id}"))
    assert "Not in scope" not in page.text


def test_analysers_that_were_not_asked_this_time_are_named(site: Site) -> None:
    """What they would find is said by nobody (spec D-24)."""
    dossier(site, found("a"))
    run = going(site.world, "bandit")
    run.publish(sealed(analyser="bandit"))
    page = paper(plain_browser(site, Role.VIEWER).get(f"/horizon/analyses/{run.id}"))
    assert "nothing is said of what they would find: ruff" in page.text


def test_a_running_analysis_is_cancelled_with_a_reason_and_a_published_one_is_not(site: Site) -> None:
    """Cancelling undoes nothing that is published: what was asked for stands beside how it is now (spec D-20)."""
    run = going(site.world)
    browser = plain_browser(site, Role.OPERATOR)
    form = paper(browser.get(f"/horizon/analyses/{run.id}/cancel")).form("/cancel")
    assert "Say why." in paper(press(browser, form), 422).text
    first, second = press(browser, form, reason="the wrong tree"), press(browser, form, reason="the wrong tree")
    assert (first.status_code, second.status_code) == (303, 303)
    shown = paper(browser.get(first.headers["location"]))
    assert "The analysis is cancelled" in shown.text
    assert "the wrong tree" in shown.text
    assert audited(site, "analyses.cancel") == [("user:operator", "done", None)]
    late = going(site.world, project="late")
    form = paper(browser.get(f"/horizon/analyses/{late.id}/cancel")).form("/cancel")
    late.publish(sealed(found("a")))
    answer = paper(press(browser, form, reason="too late"), 409)
    assert "too late" in answer.text.split("How it is now")[0]
    assert "complete" in answer.text.split("How it is now")[1]
    assert "Nothing was done." in paper(browser.get(f"/horizon/analyses/{late.id}/cancel"), 409).text


def test_each_role_cancels_if_it_may(site: Site) -> None:
    """By direct request, past all buttons (field case R75)."""
    for role in Role:
        run = going(site.world, project=str(role))
        sent = {"action_id": new_id(), "reason": "the matrix"}
        allowed = Right.CANCEL in RIGHTS[role]
        client = site.as_(role)
        asked = client.get(f"/horizon/analyses/{run.id}/cancel")
        assert site.db.run(analysis, run.id).view.state == "running"
        done = client.post(f"/horizon/analyses/{run.id}/cancel", data=sent)
        assert (asked.status_code, done.status_code) == ((200, 303) if allowed else (403, 403))
        assert (site.db.run(analysis, run.id).view.state == "cancelled") is allowed
    admin = site.as_(Role.ADMIN)
    assert admin.get(f"/horizon/analyses/{new_id()}").status_code == 404
    assert admin.get("/horizon/analyses/nothing").status_code == 422
