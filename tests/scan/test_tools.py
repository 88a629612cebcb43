"""Two tools are two analysers, whoever brings their reports: what one did not find, the other has not mended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testigo.errors import EvidenceInvalid, NotFound
from testigo.evidence.analysers import Task, analyser, read
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.beneath import Place
from testigo.evidence.occurrences import occurrences
from testigo.evidence.reported import Reading
from testigo.evidence.sarif.tools import TOOL, tool_of
from testigo.rules.evidence import sealing
from testigo.rules.outcomes import Succeed
from testigo.scan.plan import Wanted, plan
from testigo.scan.scope import scope
from tests.evidence.reports import result, sarif, written
from tests.evidence.store.kit import KINDS, Going, sealed
from tests.scan.kit import tree
from tests.world import World

LINT, AUDIT = "Lint", "Audit Pro"


def report(folder: Path, *runs: tuple[str, Sequence[str]]) -> Path:
    """A report of runs, each by a tool that found something in files."""
    name = "-".join(tool for tool, _ in runs)
    told = [{"tool": {"driver": {"name": tool}}, "results": [result(uri) for uri in files]} for tool, files in runs]
    return written(folder, sarif(*told), f"{name}.sarif")


def readings(path: Path, name: str) -> list[Reading]:
    """What an analyser reads in it."""
    return list(
        read(analyser(name, apart=path.parent), Task(path.parent, (), path.parent, report=Place(path)), None, None)
    )


def scanned(world: World, folder: Path, *reports: Path) -> None:
    """An analysis of the small tree by ruff, which finds nothing, and of these reports, published as it is read."""
    found = scope(tree(folder / "tree"))
    new = plan(found, Wanted("shop", ("ruff",), {"sarif": reports}, queue="scans"), apart=folder)
    world.db.run(begin_analysis, new, action=world.action())
    world.admit()
    worker = world.worker(queues=("scans",), kinds=KINDS)
    for _ in new.parts:
        worker.settle((worker.take(), Succeed()))
    results = []
    given = [*reports]
    for n, part in enumerate(new.parts):
        drafts: list[sealing.Draft] = []
        if part.analyser != "ruff":
            drafts = [each for each in readings(given.pop(0), part.analyser) if isinstance(each, sealing.Draft)]
        results.append(sealed(*sealing.sealed(drafts), part=n, analyser=part.analyser))
    Going(world, new, worker, worker.take()).publish(*results)


def known(world: World) -> list[tuple[str, str]]:
    """What the project knows: by whom, and whether it is there."""
    page = world.db.run(occurrences, "shop")
    return sorted((each.identity.analyser, str(each.presence)) for each in page.items)


def test_reports_in_turn_leave_each_others_findings(world: World, tmp_path: Path) -> None:
    """What a tool found vanishes when that tool reports again without it, and not before (spec D-23)."""
    scanned(world, tmp_path, report(tmp_path, (LINT, ["a.py", "b.py"])))
    scanned(world, tmp_path, report(tmp_path, (AUDIT, ["a.py"])))
    assert known(world) == [("sarif:audit-pro", "present"), ("sarif:lint", "present"), ("sarif:lint", "present")]
    scanned(world, tmp_path, report(tmp_path, (LINT, ["b.py"])))
    assert known(world) == [("sarif:audit-pro", "present"), ("sarif:lint", "absent"), ("sarif:lint", "present")]


def test_reports_together_are_two_as_well(world: World, tmp_path: Path) -> None:
    """The same places by two tools are two findings; one that reports nothing has mended its own."""
    both = [report(tmp_path, (LINT, ["a.py"])), report(tmp_path, (AUDIT, ["a.py"]))]
    scanned(world, tmp_path, *both)
    assert known(world) == [("sarif:audit-pro", "present"), ("sarif:lint", "present")]
    scanned(world, tmp_path, report(tmp_path, (LINT, [])), both[1])
    assert known(world) == [("sarif:audit-pro", "present"), ("sarif:lint", "absent")]


def test_a_report_of_two_tools_is_read_by_each_for_itself(tmp_path: Path) -> None:
    """Whoever is asked for a tool that wrote nothing there refuses: its silence would prove nothing (spec D-24)."""
    path = report(tmp_path, (LINT, ["a.py"]), (AUDIT, ["b.py", "c.py"]))
    for name, paths in (("sarif:lint", ["a.py"]), ("sarif:audit-pro", ["b.py", "c.py"])):
        drafts = [each for each in readings(path, name) if isinstance(each, sealing.Draft)]
        assert [(each.analyser, each.path) for each in drafts] == [(name, path) for path in paths]
    for name, says in (("sarif:other", "other"), ("sarif", "a tool without a name")):
        with pytest.raises(EvidenceInvalid, match=f"has no run of {says}") as raised:
            readings(path, name)
        assert (raised.value.field, raised.value.limit) == ("analyser", "audit-pro, lint")


@pytest.mark.parametrize("name", ["sarif:", "sarif:A", "sarif:a b", "ruff:a", "sarif:" + "a" * 61, "sarif:a\n"])
def test_what_names_no_tool_is_no_analyser(tmp_path: Path, name: str) -> None:
    """Nor are programs of one's own others'."""
    with pytest.raises(NotFound):
        analyser(name, apart=tmp_path)


def test_two_tools_have_two_names() -> None:
    """However their names are written; and one tool has one, whatever its letters' case."""
    plain = {"CodeQL": "codeql", "codeql": "codeql", "Semgrep  OSS": "semgrep-oss", "Flawfinder++": "flawfinder++"}
    assert {name: tool_of(name) for name in plain} == plain
    assert tool_of(None) == tool_of("") == tool_of(" ") == ""
    odd = ["工具", "检查", "tool", "C#", "C", "c!", "c?", "x" * 70, "x" * 71, "../a", "a/..", "\ud800", "-", "--"]
    names = [tool_of(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all(TOOL.fullmatch(name) for name in names)
