"""Whoever asks fewer analysers than before is told so: the silence of the others is no evidence (spec D-24)."""

from __future__ import annotations

from typing import Any

import pytest

from testigo.evidence import listing
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId
from tests.evidence.store.kit import going, sealed
from tests.world import World


def scanned(world: World, *analysers: str, **given: Any) -> AnalysisId:
    """A published analysis by these."""
    run = going(world, *analysers, **given)
    run.publish(*(sealed(part=at, analyser=name) for at, name in enumerate(analysers)))
    run.worker.succeed(run.lease)
    return run.id


def not_asked(world: World, analysis_id: AnalysisId) -> tuple[str, ...]:
    """Whom it did not ask, and others did."""
    return world.db.run(analysis, analysis_id).not_asked


def test_analysers_that_earlier_analyses_asked_are_named(world: World) -> None:
    """Those of the whole source and of the same project that are published."""
    first = scanned(world, "ruff", "bandit", "semgrep")
    scanned(world, "ruff", "other", scope=("a.py",))
    scanned(world, "ruff", "another", project="elsewhere")
    going(world, "ruff", "unpublished")
    fewer = [scanned(world, "ruff"), scanned(world, "ruff", "bandit")]
    part = scanned(world, "ruff", scope=("a.py",))
    assert [not_asked(world, each) for each in (first, *fewer, part)] == [(), ("bandit", "semgrep"), ("semgrep",), ()]


def test_one_that_was_given_up_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many analyses without it."""
    monkeypatch.setattr(listing, "_BEFORE", 2)
    scanned(world, "ruff", "bandit")
    assert [not_asked(world, scanned(world, "ruff")) for _ in range(3)] == [("bandit",), ("bandit",), ()]
