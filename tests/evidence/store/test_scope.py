"""An analysis of a part of the source says nothing of the rest of it (spec D-23, D-24)."""

from __future__ import annotations

from typing import Any

import pytest

from testigo.errors import Invalid
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.exemptions import exempt, exemptions
from testigo.evidence.findings import finding
from testigo.evidence.gates import set_gate
from testigo.evidence.listing import analysis
from testigo.evidence.model import Identity
from testigo.evidence.occurrences import occurrences
from testigo.evidence.projects import project
from testigo.rules.evidence.exemption import ExemptionState
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.gate import Policy
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import asked, found, one, published
from tests.world import World

NAMES = ("pkg/a", "pkg/sub/b", "other", "pkgs")


def known(world: World) -> dict[str, str]:
    """What the project knows of the findings of these names."""
    by = {content_digest(name): name for name in (*NAMES, "new", "moving")}
    return {by[each.identity.fingerprint]: str(each.presence) for each in world.db.run(occurrences, "shop").items}


@pytest.mark.parametrize(
    ("scope", "gone"),
    [
        (("src/pkg/a.py",), {"pkg/a"}),
        (("src/pkg/",), {"pkg/a", "pkg/sub/b"}),
        (("src/pkg/sub/", "src/other.py"), {"pkg/sub/b", "other"}),
        (("src/pkg",), set()),
        (("src/",), set(NAMES)),
        (None, set(NAMES)),
    ],
    ids=["a file", "a folder", "a folder and a file", "a folder as a file", "the top", "the whole"],
)
def test_it_resolves_what_lies_in_it_and_nothing_else(
    world: World, scope: tuple[str, ...] | None, gone: set[str]
) -> None:
    """A file, or a folder and all below it."""
    published(world, *map(found, NAMES))
    published(world, scope=scope)
    assert {name for name, presence in known(world).items() if presence == "absent"} == gone


def test_an_exemption_of_what_lies_elsewhere_stays(world: World) -> None:
    """It lapses with what is exempt, and that is there still (field case R86)."""
    published(world, *map(found, NAMES))
    who = Identity("ruff", content_digest("other"))
    world.db.run(exempt, "shop", who, reason="a risk", action=world.action())
    published(world, scope=("src/pkg/",))
    assert [each.state for each in world.db.run(exemptions, "shop").items] == [ExemptionState.ACTIVE]
    published(world, scope=("src/other.py",))
    assert [each.state for each in world.db.run(exemptions, "shop").items] == [ExemptionState.LAPSED]


def test_what_it_reports_is_known(world: World) -> None:
    """New, returned, or where it was."""
    published(world, *map(found, NAMES))
    published(world, scope=("src/pkg/",))
    published(world, found("pkg/a"), found("new"), scope=("src/pkg/",))
    assert known(world) == {
        "pkg/a": "returned",
        "pkg/sub/b": "absent",
        "other": "present",
        "pkgs": "present",
        "new": "present",
    }


def test_what_moved_is_looked_for_where_it_is(world: World) -> None:
    """A tool's own fingerprint may outlive a move: the place where it was tells nothing any more."""
    here: dict[str, Any] = {"fingerprint": content_digest("moving")}
    published(world, found("here", **here))
    published(world, found("there", **here))
    before = world.query("SELECT moved_n FROM testigo.occurrence")
    published(world, scope=("src/here.py",))
    assert known(world) == {"moving": "present"}
    assert world.query("SELECT moved_n FROM testigo.occurrence") == before
    published(world, scope=("src/there.py",))
    assert known(world) == {"moving": "absent"}


def test_the_project_stands_as_the_last_analysis_of_the_whole_says(world: World) -> None:
    """And a finding is told of where it was looked for, and not where it was not."""
    made: list[Finding] = [found(name) for name in NAMES]
    whole = published(world, *made)
    part = published(world, scope=("src/other.py",))
    assert world.db.run(project, "shop").latest == whole
    assert world.db.run(set_gate, "shop", Policy(), expected_revision=0, action=world.action()).analysis_id == whole
    assert world.db.run(analysis, part).view.scope == ("src/other.py",)
    assert [each.n for each in world.db.run(finding, one(world, whole, "other").id).sightings] == [2, 1]
    assert [each.n for each in world.db.run(finding, one(world, whole, "pkgs").id).sightings] == [1]


@pytest.mark.parametrize("place", ["", "/", "/src", "src/../x", "src//"])
def test_a_scope_names_places_in_the_source(world: World, place: str) -> None:
    """As findings name them."""
    with pytest.raises(Invalid) as refusal:
        world.db.run(begin_analysis, asked(scope=("src/", place)), action=world.action())
    assert refusal.value.field == "scope[1]"
