"""An analysis of a real tree, whose jobs say what they are asked, at the point where a test publishes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from testigo.evidence.analyses import begin_analysis
from testigo.rules.outcomes import Succeed
from testigo.scan.plan import Wanted, plan
from testigo.scan.scope import scope
from tests.evidence.store.kit import KINDS, Going
from tests.scan.kit import tree
from tests.world import World

__all__ = ["scanning"]


def scanning(world: World, folder: Path, *analysers: str, **given: Any) -> Going:
    """An analysis of the small tree, whose parts are done and whose publication has begun."""
    found = scope(tree(folder / "tree"))
    planned = plan(found, Wanted("shop", analysers or ("ruff",), queue="scans"), apart=folder / "apart")
    new = replace(planned, **given)
    world.db.run(begin_analysis, new, action=world.action())
    world.admit()
    worker = world.worker(queues=("scans",), kinds=KINDS)
    for _ in new.parts:
        worker.settle((worker.take(), Succeed()))
    return Going(world, new, worker, worker.take())
