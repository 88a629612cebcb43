"""Findings reviewed as people do: by the keyboard alone, on every screen, in both themes (panel.md *Tests*)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from testigo.access.roles import Role
from testigo.authority.actions import Action
from testigo.evidence.exemptions import exempt
from testigo.evidence.model import Identity
from testigo.evidence.review import advise, decide
from testigo.rules.evidence.coverage import Coverage, Outcome, Uncovered
from testigo.rules.evidence.review import Advice, Decision
from tests.browser.conftest import visiting
from tests.browser.visits import Visitor, faults
from tests.evidence.store.kit import found, going, listed, sealed
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier, several

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs_chromium

LOOKS = (("light", {"width": 1280, "height": 900}), ("dark", {"width": 390, "height": 844}))

WIDE = "x" * 120


def evidence(site: Site) -> list[str]:
    """Pages with something on them: decided, exempt and advised upon, incomplete, over several analyses."""
    for count in (4, 9):
        dossier(site, *several(count))
    wide = found("z", message=f"{WIDE} {WIDE}", path=f"src/{WIDE}/{WIDE}.py", rule=WIDE, snippet=f"{WIDE * 3}\n")
    made = dossier(site, *several(12), wide)
    run = going(site.world, "ruff", "bandit", project=WIDE)
    left = Coverage(10, 0, 1, (), (Uncovered(f"src/{WIDE}.py", "it is not UTF-8"),))
    run.publish(sealed(found("a"), coverage=left), sealed(part=1, analyser="bandit", outcome=Outcome.FAILED))
    running = going(site.world, project="running")
    site.db.run(advise, (one := listed(site.world, made)["f0"]).id, Advice("a-model", Decision.IGNORE, "a test"),
                action=Action("token:a-model"))  # fmt: skip
    site.db.run(decide, one.id, Decision.FIXED, expected_revision=1, reason="it is gone", action=Action("user:ana"))
    until = datetime.now(UTC) + timedelta(days=30)
    who = Identity("ruff", one.finding.fingerprint)
    site.db.run(exempt, "shop", who, reason="until then", expires_at=until, action=Action("user:ana"))
    (hostile,) = [view for view in listed(site.world, made).values() if view.finding.rule == WIDE]
    return [
        "/analyses",
        f"/analyses/{made}",
        f"/analyses/{run.id}",
        f"/analyses/{running.id}/cancel",
        f"/analyses/{made}/findings?decision=open&path=src/",
        f"/analyses/{made}/decide?id={hostile.id}.1&to=accepted_risk",
        f"/findings/{one.id}",
        f"/findings/{hostile.id}",
        f"/findings/{hostile.id}/exempt",
        f"/findings/{one.id}/delete",
        "/projects",
        "/projects/show?name=shop",
        "/projects/gate?name=shop",
    ]


def test_every_page_of_evidence_is_well(browser: Browser, site: Site) -> None:
    """It asks for nothing that it should not, axe finds nothing, and it fits the screen, whatever was found."""
    pages = evidence(site)
    wrong: list[str] = []
    for theme, viewport in LOOKS:
        with visiting(browser, site, viewport=viewport) as somebody:
            somebody.log_in(Role.ADMIN).looks(theme=theme)
            page = somebody.open("/horizon/analyses")
            for path in pages:
                somebody.go(page, f"/horizon{path}")
                wrong += faults(page)
    assert not wrong, "\n".join(wrong)


def test_findings_are_reviewed_by_the_keyboard_alone(visitor: Visitor) -> None:
    """From one to the next, decided by a number, the reason typed, and back in the list as it was asked for."""
    made = dossier(visitor.site, *several(5))
    page = visitor.log_in(Role.REVIEWER).open(f"/horizon/analyses/{made}/findings?decision=open")
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    expect(page.locator("tr:has(:focus)")).to_contain_text("src/f1.py")
    page.keyboard.press("5")
    expect(page.locator("h1")).to_have_text("Set 1 finding to “ignore”?")
    page.keyboard.type("noise")
    page.keyboard.press("Enter")
    expect(page.locator(".notice h2")).to_have_text("1 finding is set to “ignore”.")
    expect(page.locator("tbody tr")).to_have_count(4)
    for key in ("j", "x", "j", "x", "2"):
        page.keyboard.press(key)
    expect(page.locator("h1")).to_have_text("Set 2 findings to “needs review”?")
    assert listed(visitor.site.world, made)["f1"].review.reason == "noise"


def test_without_the_keys_they_do_nothing(visitor: Visitor) -> None:
    """Who turned shortcuts off decides nothing by a slip of the hand (WCAG 2.1.4)."""
    made = dossier(visitor.site, *several(2))
    visitor.log_in(Role.REVIEWER).looks(keys="off")
    page = visitor.open(f"/horizon/analyses/{made}/findings")
    for key in ("j", "x", "7"):
        page.keyboard.press(key)
    expect(page.locator("h1")).to_contain_text("Findings of")
    expect(page.locator("input:checked")).to_have_count(0)
