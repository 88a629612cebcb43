"""Which tool wrote a run, as findings are known by it: two tools share no finding, and none makes another's vanish."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from testigo.evidence.sarif.heads import RUNS_MAX
from testigo.evidence.sarif.loose import text
from testigo.evidence.streaming import Source, Walk

__all__ = ["TOOL", "tool_of", "tools"]

TOOL = re.compile(r"[a-z0-9][a-z0-9._+-]{0,59}")

_UNFIT = re.compile(r"[^a-z0-9._+-]+")


def tool_of(driver: str | None) -> str:
    """The name of a run's driver in a form that is fit for names; empty where it has none.

    A name that is cut, or has other letters, ends in a digest of the whole, so that two tools have two names.
    """
    said = "-".join((driver or "").lower().split())
    if not said or TOOL.fullmatch(said):
        return said
    fit = _UNFIT.sub("-", said).strip("-._+")[:48] or "tool"
    return f"{fit}-{hashlib.sha256(said.encode(errors='replace')).hexdigest()[:8]}"


def tools(path: Path) -> tuple[str, ...]:
    """The tools of the runs of a report, each once, in order. Raises EvidenceInvalid for one that is no SARIF log."""
    with Source(path) as source:
        walk = Walk(source)
        found = {
            _driver(walk): None
            for member in walk.members()
            if member == "runs"
            for number in walk.elements()
            if number < RUNS_MAX
        }
        walk.finish()
    return tuple(found)


def _driver(walk: Walk) -> str:
    name = None
    for member in walk.members():
        if member == "tool":
            for part in walk.members():
                if part == "driver":
                    for said in walk.members():
                        if said == "name":
                            name = text(walk.value())
    return tool_of(name)
