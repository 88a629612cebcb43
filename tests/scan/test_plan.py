"""How a scan is split: every file of an analyser is in exactly one part, and the last job waits for all of them."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from testigo.authority.actions import new_id
from testigo.errors import Invalid, NotFound
from testigo.evidence.model import AnalysisId
from testigo.evidence.transport.request import Request
from testigo.scan.asked import QUEUE, jobs
from testigo.scan.plan import Wanted, every, plan, project_of
from testigo.scan.scope import Scope
from testigo.settings import LIMITS
from tests.evidence.reports import sarif, written

MIB = 1024**2


def _scope(**files: int) -> Scope:
    return Scope(Path("/tree"), {f"{name}.py": size for name, size in sorted(files.items())}, {}, by_git=False)


def test_every_file_is_in_one_part_of_each_analyser() -> None:
    """And so is what its job is told (spec D-24)."""
    found = _scope(**{f"m{n:04d}": n * 1000 for n in range(1200)})
    new = plan(found, Wanted("shop", ("bandit", "ruff")), apart=Path("/none"))
    given = Counter[tuple[str, str]]()
    for part in new.parts:
        payload = json.loads(part.job.payload)
        assert payload["files"] == sorted(payload["files"])
        assert (payload["analyser"], len(payload["files"])) == (part.analyser, part.files)
        given.update((part.analyser, file) for file in payload["files"])
    assert given == Counter((name, file) for name in ("bandit", "ruff") for file in found.files)
    assert set(new.publish.parents) == {part.job.id for part in new.parts}


def test_what_is_not_in_scope_goes_with_the_analysis() -> None:
    """Nobody else counts it."""
    found = Scope(Path("/tree"), {"a.py": 1}, {"binary": 2}, by_git=True)
    assert plan(found, Wanted("shop", ("ruff",)), apart=Path("/none")).left_out == {"binary": 2}


def test_parts_grow_where_there_would_be_too_many() -> None:
    """A job waits for 1,000 others at most."""
    found = _scope(**{f"m{n:05d}": 3 * MIB for n in range(3000)})
    new = plan(found, Wanted("shop", ("bandit", "detect-secrets")), apart=Path("/none"))
    assert 1 < len(new.parts) <= LIMITS.parents_max
    assert sum(part.files for part in new.parts) == 2 * len(found.files)


def test_names_fit_into_their_job() -> None:
    """However long they are."""
    found = _scope(**{f"{'n' * 1000}{n:04d}": 1 for n in range(1000)})
    new = plan(found, Wanted("shop", ("ruff",)), apart=Path("/none"))
    assert len(new.parts) > 1
    assert all(len(part.job.payload.encode()) <= LIMITS.inline_bytes_max for part in new.parts)


def test_an_analyser_without_files_has_a_part_all_the_same() -> None:
    """It says so itself; silence would be a gap (spec D-24)."""
    new = plan(Scope(Path("/tree"), {"README": 5}, {}, by_git=False), Wanted("shop", ("ruff",)), apart=Path("/none"))
    assert [(part.analyser, part.files) for part in new.parts] == [("ruff", 0)]


def test_two_analyses_share_no_result() -> None:
    """The same files may have changed in between: the request names its analysis."""
    found = _scope(a=1)
    one, other = (plan(found, Wanted("shop", ("ruff",)), apart=Path("/none")) for _ in range(2))
    assert one.parts[0].job.payload != other.parts[0].job.payload


def test_reports_are_parts_of_their_own(tmp_path: Path) -> None:
    """One for each tool that wrote in it, by their absolute names; and none is asked for without one."""

    def by(*drivers: str | None) -> dict[str, Any]:
        return sarif(*({"tool": {"driver": {"name": driver} if driver else {}}, "results": []} for driver in drivers))

    reports = {"a": by("CodeQL"), "b": by("Semgrep OSS", "CodeQL", "codeql"), "c": by(None), "d": by(), "e": b"no"}
    paths = [written(tmp_path, content, f"{name}.sarif") for name, content in reports.items()]
    new = plan(_scope(a=1), Wanted("shop", (), {"sarif": paths, "cyclonedx": []}), apart=tmp_path)
    told = [(part.analyser, json.loads(part.job.payload)["options"]["file"]) for part in new.parts]
    assert [(name, Path(file).stem) for name, file in told] == [
        ("sarif:codeql", "a"),
        ("sarif:codeql", "b"),
        ("sarif:semgrep-oss", "b"),
        ("sarif", "c"),
        ("sarif", "d"),
        ("sarif", "e"),
    ]
    assert new.analysers == ("sarif:codeql", "sarif:semgrep-oss", "sarif")
    assert all(Path(file).is_absolute() for _, file in told)
    with pytest.raises(Invalid):
        plan(_scope(a=1), Wanted("shop", ("sarif",)), apart=tmp_path)
    with pytest.raises(Invalid, match="none is named"):
        plan(_scope(a=1), Wanted("shop", ("sarif:other",), {"sarif": paths}), apart=tmp_path)


def test_what_is_asked_for_by_default(tmp_path: Path) -> None:
    """Analysers that are here, and that find something to look at."""
    assert every(_scope(a=1), tmp_path) == ("detect-secrets", "bandit", "ruff")
    found = Scope(Path("/tree"), {"a.py": 1, "requirements.txt": 1}, {}, by_git=False)
    assert every(found, tmp_path) == ("detect-secrets", "bandit", "ruff", "cyclonedx-py")
    with pytest.raises(NotFound):
        plan(found, Wanted("shop", ("nobody",)), apart=tmp_path)


@pytest.mark.parametrize(
    ("folder", "name"), [("shop", "shop"), ("my shop!", "my-shop"), ("...", "project"), ("é", "project")]
)
def test_a_project_is_named_after_its_folder(folder: str, name: str) -> None:
    """In letters that every shell takes."""
    assert project_of(Path("/work") / folder) == name


def test_jobs_have_ids_that_follow_from_their_analysis() -> None:
    """The same in every try, each once, and in the order of the parts (spec P-01)."""
    requests = [Request("ruff", "/tree", (f"{n}.py",)) for n in range(LIMITS.parents_max)]
    analysis = AnalysisId(new_id())
    first, again = jobs(requests, QUEUE, analysis), jobs(requests, QUEUE, analysis)
    ids = [*(part.job.id for part in first.parts), first.publish.id]
    assert ids == [*(part.job.id for part in again.parts), again.publish.id] == sorted(set(ids))
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert not set(ids) & {part.job.id for part in jobs(requests, QUEUE, AnalysisId(new_id())).parts}
