"""Analysers: one small file each, and this list of them. How to add one is in the guide *Add an analyser*."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testigo.errors import EvidenceInvalid, NotFound
from testigo.evidence.analysers.bandit import Bandit
from testigo.evidence.analysers.cyclonedx import Cyclonedx, CyclonedxPy
from testigo.evidence.analysers.detect_secrets import DetectSecrets
from testigo.evidence.analysers.model import Analyser, Bounds, Command, Ended, Task
from testigo.evidence.analysers.ruff import Ruff
from testigo.evidence.analysers.sarif import Sarif
from testigo.evidence.analysers.semgrep import Semgrep
from testigo.evidence.reported import Reading
from testigo.evidence.sarif import TOOL

__all__ = ["Analyser", "Bounds", "Command", "Ended", "Task", "analyser", "analysers", "read"]


def analysers(apart: Path) -> dict[str, Analyser]:
    """Every analyser by its name; `apart` is the folder of those that are installed in environments of their own."""
    every: tuple[Analyser, ...] = (
        Ruff(),
        Bandit(),
        DetectSecrets(),
        Semgrep(apart / Semgrep.name),
        Sarif(),
        CyclonedxPy(),
        Cyclonedx(),
    )
    return {each.name: each for each in every}


def analyser(name: str, *, apart: Path) -> Analyser:
    """The analyser of that name, `sarif:TOOL` for reports of a tool. Raises NotFound, naming those that there are."""
    known = analysers(apart)
    family, _, tool = name.partition(":")
    if family == Sarif().name and TOOL.fullmatch(tool):
        return Sarif(tool)
    if name not in known:
        raise NotFound(
            f"There is no analyser {name[:100]!r}.", field="analyser", remedy=f"Name one of: {', '.join(known)}."
        )
    return known[name]


def read(analyser: Analyser, task: Task, command: Command | None, ended: Ended | None) -> Iterator[Reading]:
    """What the analyser's report holds. Raises EvidenceInvalid if the command ended so that it has none."""
    if command is not None and (ended is None or ended.status not in command.exits):
        how = "has not ended" if ended is None else f"ended with status {ended.status}"
        raise EvidenceInvalid(f"{analyser.name} {how}, so its report proves nothing", field="status")
    return analyser.read(task, ended)
