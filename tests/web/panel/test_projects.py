"""Projects in the panel: their findings over time, their gate in words, the risks that they take (spec D-23)."""

from __future__ import annotations

from testigo.access.roles import Role
from testigo.authority.actions import Action
from testigo.evidence.exemptions import exempt
from testigo.evidence.model import Identity
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier, several
from tests.web.panel.paper import paper
from tests.web.panel.stage import plain_browser


def test_a_project_shows_its_findings_over_its_analyses(site: Site) -> None:
    """As charts with words and a table; a single analysis makes no trend."""
    viewer = site.as_(Role.VIEWER)
    assert "No project yet." in paper(viewer.get("/horizon/projects")).text
    dossier(site, *several(5))
    assert "There is no trend yet." in paper(viewer.get("/horizon/projects/show?name=shop")).text
    dossier(site, *several(10))
    page = paper(plain_browser(site, Role.VIEWER).get("/horizon/projects/show?name=shop"))
    assert "critical: from 1 to 2." in page.text
    assert "chart-found-title" in page.html
    assert "chart-counting-title" in page.html
    assert "Show as a table" in page.text
    assert "At most: no critical, no high." in page.text
    assert "Set the gate" not in page.text
    assert viewer.get("/horizon/projects/show?name=nobody").status_code == 404
    assert paper(viewer.get("/horizon/projects")).link("shop") == "/horizon/projects/show?name=shop"


def test_the_risks_of_a_project_lead_to_what_they_are_taken_for(site: Site) -> None:
    """Each with who took it, why and until when."""
    made = dossier(site, found("a", Severity.HIGH))
    identity = Identity("ruff", found("a").fingerprint)
    site.db.run(exempt, "shop", identity, reason="until the gateway goes", action=Action("user:ana"))
    page = paper(site.as_(Role.VIEWER).get("/horizon/projects/show?name=shop"))
    for words in ("until the gateway goes", "user:ana", "active", "for ever"):
        assert words in page.text
    link = page.link("ruff")
    assert link.startswith(f"/horizon/analyses/{made}/findings?")
    assert "S105" in paper(site.as_(Role.VIEWER).get(link)).text
