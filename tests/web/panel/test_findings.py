"""Findings in the panel: searched, decided, exempted and deleted by who may, as they were seen (spec D-16 to D-19)."""

from __future__ import annotations

import pytest

from testigo.access.roles import RIGHTS, Right, Role
from testigo.authority.actions import Action, new_id
from testigo.evidence.exemptions import exempt
from testigo.evidence.findings import FindingDetail, finding
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, FindingId, Identity
from testigo.evidence.review import advise, decide
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found, listed
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier, several
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser
from tests.web.panel.test_actions import audited
from tests.web.panel.test_hostile import MARKUP, check_inert


def ids(site: Site, analysis_id: AnalysisId) -> dict[str, FindingId]:
    """The findings of an analysis, by their names."""
    return {name: view.id for name, view in listed(site.world, analysis_id).items()}


def shown(site: Site, finding_id: FindingId) -> FindingDetail:
    """A finding as it stands."""
    return site.db.run(finding, finding_id)


def standing(site: Site) -> list[object]:
    """How all findings, decisions and exemptions stand."""
    return [
        *site.world.query("SELECT id, decision, revision, reason FROM testigo.finding ORDER BY id"),
        *site.world.query("SELECT finding_id, revision FROM testigo.decision ORDER BY 1, 2"),
        *site.world.query("SELECT fingerprint, revision FROM testigo.exemption ORDER BY 1"),
    ]


def question(analysis_id: AnalysisId, *chosen: str, to: str = "fixed", **more: str) -> str:
    """The address that asks whether this decision is meant."""
    asked = "".join(f"&id={each}" for each in chosen) + "".join(f"&{name}={value}" for name, value in more.items())
    return f"/horizon/analyses/{analysis_id}/decide?to={to}{asked}"


def test_a_finding_is_decided_from_the_list_without_a_script(site: Site) -> None:
    """Chosen, asked why, done once; the gate follows, and the list comes back as it was asked for (spec D-17)."""
    made = dossier(site, found("a", Severity.HIGH), found("b", Severity.LOW))
    one = ids(site, made)["a"]
    browser = plain_browser(site, Role.REVIEWER)
    page = paper(browser.get(f"/horizon/analyses/{made}/findings?decision=open&severity=high"))
    assert "S105" in page.text
    assert "src/a.py" in page.text
    assert "src/b.py" not in page.text
    form = page.form("/decide")
    asked = paper(press(browser, form, id=f"{one}.1", to="false_positive"))
    assert "Set 1 finding to “false positive”?" in asked.text
    post = asked.form("/decide")
    assert "Say why." in paper(press(browser, post), 422).text
    first, second = press(browser, post, reason="a test's"), press(browser, post, reason="a test's")
    assert (first.status_code, second.status_code) == (303, 303)
    back = first.headers["location"]
    assert "severity=high" in back
    assert "decision=open" in back
    assert "1 finding is set to “false positive”." in paper(browser.get(back)).text
    view = shown(site, one).view
    assert (view.decision, view.review.reason, view.review.revision) == ("false_positive", "a test's", 2)
    assert view.decided_by == "user:reviewer"
    assert site.db.run(analysis, made).view.verdict is Verdict.PASSED
    assert audited(site, "findings.decide") == [("user:reviewer", "done", None)]


def test_findings_are_searched_by_all_that_they_are(site: Site) -> None:
    """Each part is a chip that can be taken away, whatever its name; a file, a folder, a rule, words of the message."""
    made = dossier(site, found("a"), found("b", path="src/deep/b.py", rule="B101", message="an assert"))
    client = plain_browser(site, Role.OPERATOR)
    for query, seen in (
        ("path=src/deep/", {"B101"}),
        ("path=src/a.py", {"S105"}),
        ("rule=B101", {"B101"}),
        ("analyser=ruff&text=ASSERT", {"B101"}),
        ("known=no&exempt=no&suppressed=no", {"B101", "S105"}),
        ("severity=low", set()),
    ):
        page = paper(client.get(f"/horizon/analyses/{made}/findings?{query}&said=x&request=y"))
        assert {rule for rule in ("B101", "S105") if rule in page.links or f"{rule} ruff" in page.text} == seen, query
        first = query.partition("=")[0]
        without = page.link(f"{first}:")
        assert f"{first}=" not in without
        assert client.get(without).status_code == 200


def test_many_are_decided_with_one_reason_and_each_as_it_was_seen(site: Site) -> None:
    """What somebody else decided meanwhile is left alone, beside what was tried; nothing of it is lost (spec D-19)."""
    made = dossier(site, *several(4))
    names = ids(site, made)
    browser = plain_browser(site, Role.REVIEWER)
    asked = paper(browser.get(question(made, *(f"{one}.1" for one in names.values()), to="needs_review")))
    assert "Set 4 findings to “needs review”?" in asked.text
    site.db.run(
        decide, names["f1"], Decision.FIXED, expected_revision=1, reason="I have seen it", action=Action("user:ana")
    )
    form = asked.form("/decide")
    assert "Say why." in paper(press(browser, form), 422).text
    answer = paper(press(browser, form, reason="look at it twice"), 409)
    assert "3 findings were decided as you asked." in answer.text
    tried, now = answer.text.split("How it is now")
    assert "look at it twice" in tried
    assert "I have seen it" in now
    assert "user:ana" in now
    assert [str(shown(site, one).view.decision) for one in names.values()].count("needs_review") == 3
    assert shown(site, names["f1"]).view.decision == "fixed"
    again = paper(browser.get(answer.link("Ask again")))
    assert dict(again.form("/decide").fields)["reason"] == "look at it twice"
    assert press(browser, again.form("/decide")).status_code == 303
    assert [each.decision for each in shown(site, names["f1"]).history] == ["fixed", "needs_review"]


def test_all_that_match_are_decided_as_they_stand_when_it_is_asked(site: Site) -> None:
    """The set is frozen by the question: what is decided after it is told apart."""
    made = dossier(site, *several(7))
    browser = plain_browser(site, Role.REVIEWER)
    asked = paper(browser.get(question(made, to="ignore", all="yes", severity="critical")))
    assert "Set 2 findings to “ignore”?" in asked.text
    assert press(browser, asked.form("/decide"), reason="noise").status_code == 303
    assert {str(view.finding.severity) for view in listed(site.world, made).values() if view.decision == "ignore"} == {
        "critical"
    }


def test_a_page_of_an_older_revision_leads_to_the_start(site: Site) -> None:
    """A list is of one revision of its collection: its next page is refused once something was decided (spec D-19)."""
    made = dossier(site, *several(60))
    browser = plain_browser(site, Role.VIEWER)
    first = paper(browser.get(f"/horizon/analyses/{made}/findings"))
    further = first.link("Further")
    assert browser.get(further).status_code == 200
    one = ids(site, made)["f0"]
    site.db.run(decide, one, Decision.FIXED, expected_revision=1, reason="it is", action=Action("user:ana"))
    stale = paper(browser.get(further), 409)
    assert "The findings have changed since the page before." in stale.text
    assert browser.get(stale.link("From the start")).status_code == 200


def test_a_finding_tells_all_that_is_known_of_it_and_its_advice_apart(site: Site) -> None:
    """History, sightings over analyses, exemption; an advice moves nothing (spec D-18, D-19, D-23)."""
    older = dossier(site, found("a", snippet="pass_word\n"))
    made = dossier(site, found("a", snippet="pass_word\n"))
    one = ids(site, made)["a"]
    told = Advice("a-model", Decision.FALSE_POSITIVE, "it is a placeholder")
    site.db.run(advise, one, told, action=Action("token:a-model"))
    page = paper(site.as_(Role.OPERATOR).get(f"/horizon/findings/{one}"))
    for words in ("What an advisor thinks", "it is a placeholder", "Nobody has decided.", "First found by analysis #1.",
                  "pass_word", "The project takes no risk with it."):  # fmt: skip
        assert words in page.text
    assert page.link("shop #1") == f"/horizon/analyses/{older}"
    assert shown(site, one).view.decision == "open"
    veiled = paper(site.as_(Role.VIEWER).get(f"/horizon/findings/{one}"))
    assert "pass_word" not in veiled.html
    assert "Your role does not see the lines of the source." in veiled.text
    assert "Your role" in paper(site.as_(Role.VIEWER).get(f"/horizon/analyses/{made}/findings?text=pass"), 422).text


def test_a_risk_is_taken_for_a_time_and_taken_back(site: Site) -> None:
    """With a reason, until a day; the gate passes meanwhile and the finding stays as it was (spec D-23)."""
    made = dossier(site, found("a", Severity.HIGH))
    one = ids(site, made)["a"]
    browser = plain_browser(site, Role.REVIEWER)
    form = paper(browser.get(f"/horizon/findings/{one}/exempt")).form("/exempt")
    assert "Say why." in paper(press(browser, form), 422).text
    assert "not much later" in paper(press(browser, form, reason="r", until="2001-01-01"), 422).text
    assert "That is no day." in paper(press(browser, form, reason="r", until="soon"), 422).text
    assert press(browser, form, reason="until the gateway goes").status_code == 303
    page = paper(browser.get(f"/horizon/findings/{one}"))
    assert "until the gateway goes" in page.text
    assert site.db.run(analysis, made).gate.verdict is Verdict.PASSED
    assert "until the gateway goes" in paper(browser.get("/horizon/projects/show?name=shop")).text
    stale = paper(press(browser, paper(browser.get(f"/horizon/findings/{one}/exempt")).form("/exempt"),
                        reason="another", revision="0"), 409)  # fmt: skip
    assert "until the gateway goes" in stale.text.split("How it is now")[1]
    assert "another" in stale.text.split("How it is now")[0]
    back = paper(browser.get(f"/horizon/findings/{one}/unexempt")).form("/unexempt")
    assert press(browser, back, reason="the gateway stays").status_code == 303
    assert site.db.run(analysis, made).gate.verdict is Verdict.FAILED
    again = paper(browser.get(f"/horizon/findings/{one}/unexempt")).form("/unexempt")
    assert "Nothing was done." in paper(press(browser, again, reason="twice"), 409).text
    assert [str(each.decision) for each in shown(site, one).history] == []


def test_a_finding_is_deleted_with_its_reason_unless_it_has_changed(site: Site) -> None:
    """A separate action, which checks the revision (spec D-18)."""
    made = dossier(site, found("a"), found("b"))
    names = ids(site, made)
    browser = plain_browser(site, Role.ADMIN)
    form = paper(browser.get(f"/horizon/findings/{names['a']}/delete")).form("/delete")
    site.db.run(decide, names["a"], Decision.FIXED, expected_revision=1, reason="it is", action=Action("user:ana"))
    assert "Nothing was done." in paper(press(browser, form, reason="a mistake"), 409).text
    form = paper(browser.get(f"/horizon/findings/{names['a']}/delete")).form("/delete")
    assert "Say why." in paper(press(browser, form), 422).text
    assert press(browser, form, reason="a mistake").status_code == 303
    assert set(ids(site, made)) == {"b"}
    assert browser.get(f"/horizon/findings/{names['a']}").status_code == 404


@pytest.mark.parametrize("role", list(Role))
def test_each_role_does_to_findings_what_it_may_and_nothing_else(site: Site, role: Role) -> None:
    """By direct request, past all buttons; a GET changes nothing (field case R75)."""
    made = dossier(site, *several(5))
    names, client = ids(site, made), site.as_(role)
    risk = shown(site, names["f4"]).view.finding
    site.db.run(exempt, "shop", Identity(risk.analyser, risk.fingerprint), reason="r", action=Action("user:ana"))
    actions = {
        "decide": (Right.REVIEW, f"/horizon/analyses/{made}/decide", {"chosen": f"{names['f0']}.1", "to": "fixed"}),
        "exempt": (Right.REVIEW, f"/horizon/findings/{names['f1']}/exempt", {"revision": "0"}),
        "delete": (Right.FORGET, f"/horizon/findings/{names['f2']}/delete", {"revision": "1"}),
        "unexempt": (Right.REVIEW, f"/horizon/findings/{names['f4']}/unexempt", {"revision": "1"}),
        "gate": (Right.REVIEW, "/horizon/projects/gate", {"name": "shop", "revision": "0", "most.*.high": "3"}),
    }
    for verb, (right, address, sent) in actions.items():
        before = standing(site)
        query = {"id": f"{names['f0']}.1", "to": "fixed", "name": "shop"}
        asked = client.get(address, params=query)
        assert standing(site) == before
        done = client.post(address, data={**sent, "action_id": new_id(), "reason": "the matrix"})
        allowed = right in RIGHTS[role]
        assert (asked.status_code, done.status_code) == ((200, 303) if allowed else (403, 403)), verb
        if verb != "gate":
            assert (standing(site) == before) is not allowed, verb
    page = paper(client.get(f"/horizon/findings/{names['f3']}"))
    assert ("Set it to:" in page.text) is (Right.REVIEW in RIGHTS[role])
    assert ("/delete" in page.html) is (Right.FORGET in RIGHTS[role])


UNMEANT: list[dict[str, str]] = [
    {"chosen": "ID.1", "to": "closed"},
    {"chosen": "ID", "to": "fixed"},
    {"chosen": "ID.0", "to": "fixed"},
    {"chosen": "ID.x", "to": "fixed"},
    {"chosen": "", "to": "fixed"},
    {"chosen": "ID.1"},
    {"chosen": "ID.1", "to": "fixed", "action_id": "x"},
    {"chosen": "ID.1", "to": "fixed", "reason": "r" * 1_001},
]
"""Forms that no page has."""


def test_a_form_that_no_page_has_is_refused(site: Site) -> None:
    """By field, and nothing is changed; without the token of the page neither (field case R74)."""
    made = dossier(site)
    one, client = ids(site, made)["f0"], site.as_(Role.ADMIN)
    address, before = f"/horizon/analyses/{made}/decide", standing(site)
    for sent in UNMEANT:
        filled = {name: value.replace("ID", one) for name, value in sent.items()}
        answer = client.post(address, data={"action_id": new_id(), "reason": "r", **filled})
        assert answer.status_code == 422, (sent, answer.text[-500:])
    ours = plain_browser(site, Role.ADMIN)
    sent = {"chosen": f"{one}.1", "to": "fixed", "reason": "forged", "action_id": new_id()}
    assert ours.post(address, data=sent).status_code == 403
    assert standing(site) == before
    for query in ("severity=worst", "decision=x", "known=maybe", "rule=a&rule=b"):
        assert client.get(f"/horizon/analyses/{made}/findings?{query}").status_code == 422


@pytest.mark.parametrize("text", MARKUP)
def test_markup_in_findings_is_text_on_every_page(site: Site, text: str) -> None:
    """In every field that an analyser, an advisor, a reviewer or a scan fills (field cases R73, R76)."""
    hostile = found(
        "a",
        rule=text,
        rule_name=text,
        message=text,
        path=f"src/{text.replace('/', '-')}.py",
        snippet=text,
        metadata={text: text},
    )
    made = dossier(site, hostile, project=text)
    (row,) = site.world.query("SELECT CAST(id AS text) AS id FROM testigo.finding")
    one = FindingId(row.id)
    site.db.run(decide, one, Decision.FIXED, expected_revision=1, reason=text, action=Action(text))
    site.db.run(advise, one, Advice(text, Decision.IGNORE, text), action=Action(text))
    identity = Identity("ruff", hostile.fingerprint)
    site.db.run(exempt, text, identity, reason=text, action=Action(text))
    admin = site.as_(Role.ADMIN)
    addresses: list[tuple[str, dict[str, str]]] = [
        ("/horizon/analyses", {}),
        ("/horizon/analyses", {"project": text}),
        (f"/horizon/analyses/{made}", {}),
        (f"/horizon/analyses/{made}/findings", {"text": text, "rule": text}),
        (f"/horizon/analyses/{made}/decide", {"id": f"{one}.2", "to": "fixed", "reason": text, "asked": text}),
        (f"/horizon/findings/{one}", {"said": text, "as": text}),
        (f"/horizon/findings/{one}/exempt", {"reason": text, "until": text}),
        (f"/horizon/findings/{one}/unexempt", {"reason": text}),
        (f"/horizon/findings/{one}/delete", {"reason": text}),
        ("/horizon/projects", {}),
        ("/horizon/projects/show", {"name": text}),
        ("/horizon/projects/gate", {"name": text, "reason": text}),
    ]
    for address, query in addresses:
        check_inert(paper(admin.get(address, params=query)), text, address)
    sent = {"action_id": new_id(), "chosen": f"{one}.1", "to": "ignore", "reason": text, "asked": text}
    refused = paper(admin.post(f"/horizon/analyses/{made}/decide", data=sent), 409)
    check_inert(refused, text, "conflict")
