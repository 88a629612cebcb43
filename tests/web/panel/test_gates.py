"""The gate in the panel: set by who reviews, as it was seen, with a reason (spec D-17, D-21)."""

from __future__ import annotations

import pytest
from starlette.datastructures import FormData

from testigo.access.roles import Role
from testigo.authority.actions import Action
from testigo.errors import Invalid
from testigo.evidence.gates import set_gate
from testigo.evidence.listing import analysis
from testigo.evidence.projects import project
from testigo.rules.evidence.gate import Policy, Verdict
from testigo.rules.evidence.severity import Severity
from testigo.web.panel.gates import policy_of, told_policy
from testigo.web.panel.words import words_in
from tests.evidence.store.kit import found
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser
from tests.web.panel.test_actions import audited


def test_a_gate_is_set_and_judges_the_newest_evidence_at_once(site: Site) -> None:
    """Without a script; sent twice it is set once, and the audit tells why."""
    made = dossier(site, found("a", Severity.HIGH))
    browser = plain_browser(site, Role.REVIEWER)
    asked = paper(browser.get(paper(browser.get("/horizon/projects/show?name=shop")).link("Set the gate")))
    form = asked.form("/gate")
    assert dict(form.fields)["most.*.high"] == "0"
    assert "Say why." in paper(press(browser, form), 422).text
    wrong = paper(press(browser, form, reason="r", **{"most.*.high": "few"}), 422)
    assert "A whole number is needed, or nothing." in wrong.text
    changed = {"reason": "one is known", "most.*.high": "1", "apart": "ruff", "most.ruff.high": "2", "new_only": "yes"}
    for _ in range(2):
        assert press(browser, form, **changed).status_code == 303
    page = paper(browser.get("/horizon/projects/show?name=shop&said=gate"))
    for words in ("At most: no critical, 1 high.", "By ruff at most: 2 high.", "What the baseline has does not count.",
                  "one is known", "user:reviewer"):  # fmt: skip
        assert words in page.text
    assert site.db.run(project, "shop").policy_revision == 1
    assert site.db.run(analysis, made).view.verdict is Verdict.PASSED
    assert audited(site, "gates.set") == [("user:reviewer", "done", None)]


def test_a_gate_that_somebody_set_meanwhile_is_left_alone(site: Site) -> None:
    """What was tried stands beside how it is now, and can be tried again without being typed again (spec D-19)."""
    dossier(site)
    browser = plain_browser(site, Role.REVIEWER)
    form = paper(browser.get("/horizon/projects/gate?name=shop")).form("/gate")
    site.db.run(set_gate, "shop", Policy.fail_on(Severity.LOW), expected_revision=0, reason="all of them",
                action=Action("user:ana"))  # fmt: skip
    answer = paper(press(browser, form, reason="only five", **{"most.*.high": "5"}), 409)
    tried, now = answer.text.split("How it is now")
    assert "5 high" in tried
    assert "only five" in tried
    assert "no low" in now
    assert "user:ana" in now
    again = paper(browser.get(answer.link("Ask again"))).form("/gate")
    assert dict(again.fields)["most.*.high"] == "5"
    assert dict(again.fields)["revision"] == "1"
    assert press(browser, again).status_code == 303
    assert site.db.run(project, "shop").policy.thresholds[Severity.HIGH] == 5


def test_a_form_is_read_as_the_policy_that_it_shows() -> None:
    """Empty limits nothing; what is no number is refused by its field."""
    assert policy_of(FormData([])) == Policy()
    sent = [("most.*.low", "7"), ("apart", "bandit"), ("most.bandit.high", "0"), ("most.ruff.high", "9")]
    assert policy_of(FormData([*sent])) == Policy({Severity.LOW: 7}, {"bandit": {Severity.HIGH: 0}})
    for wrong in ("-1", "1.5", "x", "9" * 30, "\u0661"):
        with pytest.raises(Invalid) as refusal:
            policy_of(FormData([("most.*.low", wrong)]))
        assert refusal.value.field == "most.*.low"


def test_a_policy_is_told_in_sentences() -> None:
    """In each language."""
    policy = Policy({Severity.CRITICAL: 0, Severity.HIGH: 3}, {"bandit": {}}, honour_suppressions=True)
    assert told_policy(policy, words_in("en")) == [
        "At most: no critical, 3 high.",
        "By bandit nothing is limited.",
        "What the source itself suppresses does not count.",
    ]
    assert told_policy(Policy(), words_in("es")) == ["No se limita nada."]
