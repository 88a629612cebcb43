"""Semgrep, installed apart, with a small set of rules of our own.

It runs in an environment of its own, since its pins would hold back ours, and without a word to anybody: no rules from
elsewhere, no metrics, no look for a new version. Files are named one by one, so that its habit of leaving out
folders such as `tests` does not apply.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testigo.errors import NotFound
from testigo.evidence.analysers.comments import IN_SOURCE, asks
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import ODD, dotted, environment
from testigo.evidence.analysers.sources import Sources
from testigo.evidence.reported import Reading, Unread
from testigo.evidence.streaming import Source, Walk
from testigo.rules.evidence import severity
from testigo.rules.evidence.paths import of_path
from testigo.rules.evidence.sealing import Draft

__all__ = ["Semgrep"]

RULES = Path(__file__).with_name("semgrep_rules.yml")
WITHHELD = "requires login"
"""What stands in place of fingerprints and lines for those without an account."""

_NOSEM = re.compile(r"\bnosem(?:grep)?\b(?:\s*:\s*(?P<of>[\w.-]+(?:\s*,\s*[\w.-]+)*)|(?!\s*:))", re.I)


class Semgrep:
    """Runs the semgrep of the environment in `folder`, where `testigo analyser install semgrep` puts it."""

    name = "semgrep"
    bounds = Bounds(seconds=900, memory_bytes=0)

    def __init__(self, folder: Path) -> None:
        self.program = folder / "bin" / "semgrep"

    def version(self) -> str:
        """The version of semgrep. Raises NotFound if it is not installed."""
        found = sorted(self.program.parent.parent.glob("lib/python*/site-packages/semgrep-*.dist-info"))
        if not found or not self.program.exists():
            raise NotFound("semgrep is not installed.", remedy="Run: testigo analyser install semgrep.")
        return found[-1].name.removeprefix("semgrep-").removesuffix(".dist-info")

    def takes(self, path: str) -> bool:
        """What there are rules for: Python source."""
        return path.endswith(".py")

    def command(self, task: Task) -> Command | None:
        """Files that are gone are left out: one of them would end the run."""
        files = [file for file in task.files if _is_there(task.root / file)]
        if not files:
            return None
        quiet = ("--metrics=off", "--disable-version-check", "--oss-only", "--no-rewrite-rule-ids")
        all_of_it = ("--no-git-ignore", "--disable-nosem", "--max-target-bytes=0", "--timeout=30", "--jobs=1")
        args = (str(self.program), "scan", "--json", f"--config={RULES}", *quiet, *all_of_it, *dotted(files))
        return Command(args, environment={**environment(task.work), "SEMGREP_SEND_METRICS": "off"})

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """Each finding with its lines; then files that it had trouble with, and those that it has not scanned."""
        unread = dict.fromkeys(task.files, "it has not scanned it")
        if ended is not None:
            sources = Sources(task.root)
            root = str(task.root.resolve())
            with Source(ended.stdout, name="semgrep's report") as source:
                walk = Walk(source)
                troubled: dict[str, str] = {}
                for member in walk.members():
                    try:
                        if member == "results":
                            for _ in walk.elements():
                                yield _draft(walk.value(), root, sources)
                        elif member == "errors":
                            for _ in walk.elements():
                                error = walk.value()
                                if error.get("path") and error.get("level") in ("warn", "error"):
                                    path = of_path(error["path"], root=root)
                                    troubled.setdefault(path, str(error.get("message")))
                        elif member == "paths":
                            for kind in walk.members():
                                if kind == "scanned":
                                    for _ in walk.elements():
                                        unread.pop(of_path(walk.value(), root=root), None)
                    except ODD as error:
                        raise walk.refused(f"semgrep writes this otherwise: {error!r:.100}") from error
                walk.finish()
            unread.update(troubled)
        for path, reason in unread.items():
            yield Unread(path, reason, failed=True)


def _is_there(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _draft(found: dict[str, Any], root: str, sources: Sources) -> Draft:
    extra = found["extra"]
    path = of_path(found["path"], root=root)
    begin, end = found["start"], found["end"]
    how_bad = severity.resolve(word=extra["severity"])
    given = extra.get("fingerprint")
    before, own = ["", "", *sources.every(path)[max(0, begin["line"] - 2) : begin["line"]]][-2:]
    is_asked = asks(_NOSEM, [own, *([before] if before.lstrip().startswith("#") else [])], found["check_id"])
    known = {name: value for name, value in extra["metadata"].items() if isinstance(value, str)}
    return Draft(
        analyser=Semgrep.name,
        rule=found["check_id"],
        severity=how_bad,
        level=severity.level_of(how_bad),
        message=extra["message"],
        path=path,
        line=begin["line"],
        column=begin["col"],
        end_line=end["line"],
        end_column=end["col"],
        snippet=sources.lines(path, begin["line"], end["line"]),
        suppressed=is_asked,
        metadata=known | (IN_SOURCE if is_asked else {}),
        parts={"semgrep": given} if given and given != WITHHELD else {},
    )
