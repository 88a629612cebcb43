"""How a scan is split: each analyser's files into parts that run side by side, and one job that publishes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from testigo.authority.actions import new_id
from testigo.errors import EvidenceInvalid, Invalid, NotFound
from testigo.evidence.analysers import analyser
from testigo.evidence.analysers.sarif import Sarif
from testigo.evidence.model import AnalysisId, NewAnalysis
from testigo.evidence.sarif import tools
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.gate import Policy
from testigo.scan.asked import QUEUE, jobs
from testigo.scan.scope import Scope
from testigo.settings import LIMITS

__all__ = ["BASIC", "FROM_FILES", "Wanted", "every", "plan", "project_of"]

BASIC = ("detect-secrets", "bandit", "ruff")
"""What every scan asks for unless it is told otherwise, the slowest first."""
FURTHER = ("semgrep", "cyclonedx-py")
"""What it asks for besides, where it is installed and there is a file for it."""
FROM_FILES = frozenset({"sarif", "cyclonedx"})
"""Analysers that read a file which another tool has written, and none of the tree's."""

_MIB = 1024**2
_LARGE_BYTES = 64 * _MIB
_PART_BYTES = {"ruff": _LARGE_BYTES, "cyclonedx-py": _LARGE_BYTES, "bandit": 2 * _MIB, "detect-secrets": _MIB}
"""Files of one part, together: each takes some ten seconds on one core."""
_PART_BYTES_ELSE = 2 * _MIB
_PART_BYTES_LEAST = _MIB // 4
_PARTS = 4
"""Of a tree that is not large there are so many parts, so that the cores end together."""
_NAMES_BYTES = LIMITS.inline_bytes_max // 2
"""Names of one part, together, so that they fit into its job."""
_PARTS_MAX = LIMITS.parents_max
_GROWTH = 2
_TRIES = 12


class _Share(NamedTuple):
    """What one part is about."""

    analyser: str
    files: tuple[str, ...]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scan is asked for. `reports` are files that `sarif` and `cyclonedx` read, by the analyser's name."""

    project: str
    analysers: tuple[str, ...] = BASIC
    reports: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    policy: Policy | None = None
    baseline: AnalysisId | None = None
    queue: str = QUEUE


def plan(found: Scope, wanted: Wanted, *, apart: Path) -> NewAnalysis:
    """The analysis with all its jobs, not begun yet. Raises `NotFound` for an analyser that nobody knows.

    A SARIF report has a part for each tool that wrote a run of it, by an analyser of the tool's own.
    """
    for name in wanted.analysers:
        if name in FROM_FILES and not wanted.reports.get(name):
            raise Invalid(f"{name} reads files that are named, and none is.", field="analysers")
    reports = _by_tools(wanted.reports)
    for name in wanted.analysers:
        if name.partition(":")[0] in FROM_FILES and name not in FROM_FILES and name not in reports:
            raise Invalid(f"{name} reads a report of that tool, and none is named.", field="analysers")
    names = tuple(dict.fromkeys([*(name for name in wanted.analysers if name not in FROM_FILES), *reports]))
    shares = _shares(found, names, reports, apart)
    requests = [Request(each.analyser, str(found.root), each.files, each.options) for each in shares]
    made = AnalysisId(new_id())
    new = jobs(requests, wanted.queue, made)
    return NewAnalysis(
        wanted.project,
        str(found.root),
        names,
        new.parts,
        new.publish,
        policy=wanted.policy,
        baseline=wanted.baseline,
        scope=None if found.only is None else (found.only,),
        left_out=found.left_out,
        id=made,
    )


def every(found: Scope, apart: Path) -> tuple[str, ...]:
    """What a scan of this scope asks for unless it is told otherwise."""
    names = list(BASIC)
    for name in FURTHER:
        each = analyser(name, apart=apart)
        with suppress(NotFound):
            each.version()
            if any(each.takes(path) for path in found.files):
                names.append(name)
    return tuple(names)


def project_of(root: Path) -> str:
    """The name of the project that a folder's name gives."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-.") or "project"


def _by_tools(given: Mapping[str, Sequence[Path]]) -> dict[str, list[Path]]:
    """The reports by the analysers that read them. One that cannot be read is `sarif`'s, which says what is wrong."""
    reports: dict[str, list[Path]] = {}
    for name, paths in given.items():
        for path in paths:
            written: tuple[str, ...] = ()
            if name == Sarif().name:
                with suppress(EvidenceInvalid):
                    written = tools(path)
            for reader in [Sarif(tool).name for tool in written] or [name]:
                reports.setdefault(reader, []).append(path)
    return reports


def _shares(found: Scope, names: Iterable[str], reports: Mapping[str, Sequence[Path]], apart: Path) -> list[_Share]:
    """The parts of every analyser; where they would be too many, each is made larger."""
    for tried in range(_TRIES):
        shares = [share for name in names for share in _of(name, found, reports, apart, _GROWTH**tried)]
        if len(shares) <= _PARTS_MAX:
            return shares
    raise Invalid("There are too many files, or their names are too long.", field="path", limit=f"{_PARTS_MAX} parts")


def _of(name: str, found: Scope, reports: Mapping[str, Sequence[Path]], apart: Path, scale: int) -> Iterator[_Share]:
    if name in reports:
        for report in reports[name]:
            yield _Share(name, (), {"file": str(report.absolute())})
        return
    takes = analyser(name, apart=apart).takes
    files = {path: size for path, size in found.files.items() if takes(path)}
    if not files:
        yield _Share(name, (), {})
    most = _PART_BYTES.get(name, _PART_BYTES_ELSE)
    if most < _LARGE_BYTES:
        most = min(most, max(_PART_BYTES_LEAST, sum(files.values()) // _PARTS + 1))
    for part in _split(files, most * scale):
        yield _Share(name, part, {})


def _split(files: Mapping[str, int], bytes_max: int) -> Iterator[tuple[str, ...]]:
    """The files in their order, cut where a part is full; a file that is larger than a part has one of its own."""
    part: list[str] = []
    held = names = 0
    for path, size in files.items():
        length = 2 * len(path.encode()) + 4
        if part and (held + size > bytes_max or names + length > _NAMES_BYTES):
            yield tuple(part)
            part, held, names = [], 0, 0
        part.append(path)
        held += size
        names += length
    if part:
        yield tuple(part)
