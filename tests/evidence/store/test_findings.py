"""findings: bounded pages of one revision of a collection, and what is wanted of it (spec D-19)."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from testigo import settings
from testigo.authority.actions import new_id
from testigo.authority.read import Cursor
from testigo.errors import CollectionChanged, CursorInvalid, Invalid, NotFound
from testigo.evidence.exemptions import exempt
from testigo.evidence.findings import EVERY, FindingFilter, findings
from testigo.evidence.model import AnalysisId, Identity
from testigo.evidence.review import advise, decide
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.rules.identity import content_digest
from testigo.settings import LIMITS
from tests.evidence.store.kit import found, listed, one, published
from tests.world import World


def paged(world: World, analysis_id: AnalysisId, wanted: FindingFilter = EVERY, limit: int = 4) -> list[str]:
    """The paths of all pages, one after another."""
    seen: list[str] = []
    cursor: Cursor | None = None
    while True:
        page = world.db.run(findings, analysis_id, wanted, after=cursor, limit=limit).page
        seen += [str(view.finding.path) for view in page.items]
        if (cursor := page.next) is None:
            return seen


def test_pages_have_every_finding_once_the_worst_first(world: World) -> None:
    """Each severity in the order of publication."""
    made = [found(f"n{n:02}", SEVERITIES[n % 5]) for n in range(23)]
    analysis_id = published(world, *made)
    expected = [f"src/n{n:02}.py" for severity in range(5) for n in range(23) if n % 5 == severity]
    for limit in (1, 4, 5, 23, 24):
        assert paged(world, analysis_id, limit=limit) == expected


def test_a_page_is_of_one_revision(world: World) -> None:
    """A decision in between is told, and the list begins anew; an advice changes no list (spec D-19)."""
    analysis_id = published(world, *(found(name) for name in "abcd"))
    first = world.db.run(findings, analysis_id, limit=2)
    target = one(world, analysis_id, "d").id
    world.db.run(advise, target, Advice("a-model", Decision.IGNORE, "no"), action=world.action())
    assert world.db.run(findings, analysis_id, after=first.page.next, limit=2).revision == first.revision
    world.db.run(decide, target, Decision.NEEDS_REVIEW, expected_revision=1, action=world.action())
    with pytest.raises(CollectionChanged) as refusal:
        world.db.run(findings, analysis_id, after=first.page.next, limit=2)
    assert refusal.value.facts == {"revision": first.revision + 1}
    assert world.db.run(findings, analysis_id).revision == first.revision + 1


def test_what_is_asked_for_has_to_hold_together(world: World) -> None:
    """Each member of a filter by itself, and two at once."""
    baseline = published(world, found("base"))
    made = [
        found("base", Severity.LOW),
        found("pkg/a", Severity.CRITICAL, rule="S1"),
        found("pkg/b", suppressed=True),
        found("pkgs", message="an O'Brien of a 100% \\ _ kind"),
        found("none", path=None, line=None),
    ]
    analysis_id = published(world, *made, baseline=baseline)
    view = one(world, analysis_id, "pkgs")
    world.db.run(decide, view.id, Decision.IGNORE, expected_revision=1, reason="x", action=world.action())
    identity = Identity("ruff", content_digest("pkg/a"))
    world.db.run(exempt, "shop", identity, reason="x", action=world.action())
    everything = {"base", "pkg/a", "pkg/b", "pkgs"}
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, everything),
        ({"severities": (Severity.CRITICAL, Severity.LOW)}, {"base", "pkg/a"}),
        ({"decisions": (Decision.IGNORE,)}, {"pkgs"}),
        ({"analyser": "ruff"}, everything),
        ({"analyser": "bandit"}, set()),
        ({"rule": "S1"}, {"pkg/a"}),
        ({"path": "src/pkgs.py"}, {"pkgs"}),
        ({"path": "src/pkg/"}, {"pkg/a", "pkg/b"}),
        ({"path": "src/pkg"}, set()),
        ({"fingerprint": content_digest("base")}, {"base"}),
        ({"suppressed": True}, {"pkg/b"}),
        ({"known": True}, {"base"}),
        ({"known": False, "suppressed": False}, {"pkg/a", "pkgs"}),
        ({"exempt": True}, {"pkg/a"}),
        ({"text": "o'brien"}, {"pkgs"}),
        ({"text": "100% \\\\ _"}, {"pkgs"}),
        ({"text": "PKG/A", "severities": (Severity.HIGH,)}, set()),
    ]
    for wanted, expected in cases:
        found_paths = set(listed(world, analysis_id, **wanted)) & everything
        assert found_paths == expected, wanted
    assert listed(world, analysis_id, exempt=True)["pkg/a"].exempt


def test_a_page_looks_at_a_bounded_number_of_findings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and the search goes on from where it stopped."""
    for name, module in list(sys.modules.items()):
        if name == "testigo.evidence.findings" and module is not settings:
            monkeypatch.setattr(module, "LIMITS", replace(LIMITS, walk_rows=5))
    analysis_id = published(world, *(found(f"n{n:02}") for n in range(12)))
    page = world.db.run(findings, analysis_id, FindingFilter(path="src/n11.py")).page
    assert (page.items, page.complete) == ((), False)
    assert paged(world, analysis_id, FindingFilter(path="src/n11.py")) == ["src/n11.py"]
    assert paged(world, analysis_id, limit=3) == [f"src/n{n:02}.py" for n in range(12)]


def test_bad_input_is_refused_by_field(world: World) -> None:
    """As are cursors of other lists."""
    analysis_id = published(world, found("a"), found("b"))
    for wanted, field in (
        (FindingFilter(severities=("awful",)), "severities"),  # type: ignore[arg-type]
        (FindingFilter(decisions=("later",)), "decisions"),  # type: ignore[arg-type]
        (FindingFilter(text=""), "text"),
        (FindingFilter(rule="a\x00b"), "rule"),
        (FindingFilter(known="yes"), "known"),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid) as refusal:
            world.db.run(findings, analysis_id, wanted)
        assert refusal.value.field == field
    cursor = world.db.run(findings, analysis_id, limit=1).page.next
    for other in (FindingFilter(rule="S105"), FindingFilter(known=False)):
        with pytest.raises(CursorInvalid):
            world.db.run(findings, analysis_id, other, after=cursor)
    with pytest.raises(CursorInvalid):
        world.db.run(findings, analysis_id, after=Cursor("xyz"))
    with pytest.raises(NotFound):
        world.db.run(findings, AnalysisId(new_id()))
