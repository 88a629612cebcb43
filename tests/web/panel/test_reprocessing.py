"""An analysis that has ended is done again from the panel, once, by who may (spec D-10, D-18)."""

from __future__ import annotations

from pathlib import Path

from testigo.access.roles import RIGHTS, Right, Role
from testigo.authority.actions import new_id
from testigo.evidence.listing import analysis
from tests.evidence.store.kit import found, going, sealed
from tests.scan.beginning import scanning
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import plain_browser
from tests.web.panel.test_actions import audited


def test_it_is_asked_and_done_once(site: Site, tmp_path: Path) -> None:
    """However often the button is pressed; each of the two leads to the other (spec B-04)."""
    run, browser = scanning(site.world, tmp_path), plain_browser(site, Role.OPERATOR)
    page = f"/horizon/analyses/{run.id}"
    assert f"{page}/reprocess" not in paper(browser.get(page)).html
    assert "Nothing was done." in paper(browser.get(f"{page}/reprocess"), 409).text
    run.publish(sealed(found("a")))
    assert f"{page}/reprocess" in paper(browser.get(page)).html
    asked = paper(browser.get(f"{page}/reprocess"))
    assert "This one stays as it is" in asked.text
    form = asked.form("/reprocess")
    first, second = press(browser, form, reason="a new ruff"), press(browser, form, reason="a new ruff")
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    made = site.db.run(analysis, run.id).view.successor
    new = paper(browser.get(first.headers["location"]))
    assert "It has begun." in new.text
    assert f'href="{page}"' in new.html
    old = paper(browser.get(page))
    assert f'href="/horizon/analyses/{made}"' in old.html
    assert f"{page}/reprocess" not in old.html
    answer = paper(press(browser, form, action_id=new_id(), reason="and again"), 409)
    assert "and again" in answer.text.split("How it is now")[0]
    assert str(made) in answer.text.split("How it is now")[1]
    assert ("user:operator", "done", None) in audited(site, "analyses.reprocess")


def test_each_role_does_it_if_it_may(site: Site, tmp_path: Path) -> None:
    """By direct request, past all buttons (field case R75)."""
    for role in Role:
        run = scanning(site.world, tmp_path / role)
        run.publish(sealed())
        allowed = Right.RETRY in RIGHTS[role]
        client = site.as_(role)
        asked = client.get(f"/horizon/analyses/{run.id}/reprocess")
        done = client.post(f"/horizon/analyses/{run.id}/reprocess", data={"action_id": new_id()})
        assert (asked.status_code, done.status_code) == ((200, 303) if allowed else (403, 403))
        assert (site.db.run(analysis, run.id).view.successor is not None) is allowed
    bare = going(site.world)
    bare.publish(sealed())
    assert (
        site.as_(Role.ADMIN).post(f"/horizon/analyses/{bare.id}/reprocess", data={"action_id": new_id()}).status_code
        == 409
    )
