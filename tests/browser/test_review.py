"""Findings reviewed as people do: by the keyboard alone (panel.md *Tests*)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from testigo.access.roles import Role
from tests.browser.visits import Visitor
from tests.evidence.store.kit import listed
from tests.web.panel.dossier import dossier, several

pytestmark = pytest.mark.needs_chromium


def test_findings_are_reviewed_by_the_keyboard_alone(visitor: Visitor) -> None:
    """From one to the next, decided by a number, the reason typed, and back in the list as it was asked for."""
    made = dossier(visitor.site, *several(5))
    page = visitor.log_in(Role.REVIEWER).open(f"/horizon/analyses/{made}/findings?decision=open")
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    expect(page.locator("tr:has(:focus)")).to_contain_text("src/f1.py")
    page.keyboard.press("5")
    expect(page.locator("h1")).to_have_text("Set 1 finding to “ignore”?")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("noise")
    page.keyboard.press("Enter")
    expect(page.locator(".notice h2")).to_have_text("1 finding is set to “ignore”.")
    expect(page.locator("tbody tr")).to_have_count(4)
    page.wait_for_load_state()  # what heeds the keys is there when the page is
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
