"""bandit: what is unsafe in Python, with bandit's own severity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from testigo.evidence.analysers.comments import IN_SOURCE, asks
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import ODD, dotted, environment, installed, module
from testigo.evidence.analysers.sources import Sources
from testigo.evidence.reported import Reading, Unread
from testigo.evidence.streaming import Source, Walk
from testigo.rules.evidence import severity
from testigo.rules.evidence.paths import of_path
from testigo.rules.evidence.sealing import Draft

__all__ = ["Bandit"]

TOTALS = "_totals"
"""What stands among the files that it tells of, and is none."""

_NOSEC = re.compile(r"#\s*nosec\b:?\s*(?P<of>[^#\s][^#]*)?")


class Bandit:
    """Runs bandit of our own environment. Its report names what it looked at, and what of that it could not parse."""

    name = "bandit"
    bounds = Bounds(seconds=900)

    def version(self) -> str:
        """The version of bandit. Raises NotFound if it is not installed."""
        return installed("bandit")

    def takes(self, path: str) -> bool:
        """Python source."""
        return path.endswith(".py")

    def command(self, task: Task) -> Command | None:
        """Status 1 says that there are findings. Given files and no folder, it looks for no settings in the tree.

        Of itself it would leave out every path with `.git`, `CVS` or the like somewhere in it, such as `.github/a.py`.
        """
        if not task.files:
            return None
        all_of_it = ("--exclude=", "--ignore-nosec")
        args = module("bandit", "--quiet", "--format", "json", *all_of_it, *dotted(task.files))
        return Command(args, exits=frozenset({0, 1}), environment=environment(task.work))

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """Each finding with the lines that it is about, not those around it, which would give it another identity.

        Then as failed the files of which the report does not tell that it looked at them.
        """
        if ended is None:
            return
        untold = set(task.files)
        sources = Sources(task.root)
        root = str(task.root.resolve())
        with Source(ended.stdout, name="bandit's report") as source:
            walk = Walk(source)
            for member in walk.members():
                if member == "metrics":
                    untold.difference_update(of_path(file, root=root) for file in walk.members() if file != TOTALS)
                if member not in ("errors", "results"):
                    continue
                for _ in walk.elements():
                    found = walk.value()
                    try:
                        path = of_path(found["filename"], root=root)
                        if member == "errors":
                            untold.discard(path)
                            yield Unread(path, str(found["reason"]), failed=True)
                        else:
                            yield _draft(found, path, sources)
                    except ODD as error:
                        raise walk.refused(f"bandit writes this otherwise: {error!r:.100}") from error
            walk.finish()
        for path in sorted(untold):
            yield Unread(path, "bandit did not look at it", failed=True)


def _draft(found: dict[str, Any], path: str, sources: Sources) -> Draft:
    how_bad = severity.resolve(word=found["issue_severity"])
    line, first, last = found["line_number"], min(found["line_range"]), max(found["line_range"])
    is_asked = asks(_NOSEC, sources.every(path)[first - 1 : last], found["test_id"], found["test_name"])
    cwe = found.get("issue_cwe") or {}
    known = {"confidence": found["issue_confidence"].lower(), "help": found.get("more_info"), "cwe": cwe.get("id")}
    known |= IN_SOURCE if is_asked else {}
    return Draft(
        analyser=Bandit.name,
        rule=found["test_id"],
        rule_name=found["test_name"],
        severity=how_bad,
        level=severity.level_of(how_bad),
        message=found["issue_text"],
        path=path,
        line=line,
        column=found["col_offset"] + 1,
        end_line=last,
        end_column=found["end_col_offset"] + 1,
        snippet=sources.lines(path, line, last),
        suppressed=is_asked,
        metadata={name: str(value) for name, value in known.items() if value},
    )
