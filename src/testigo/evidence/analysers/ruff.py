"""ruff: its rules of safety (S), of likely errors (B, E, F), whatever the tree's own settings say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from testigo.evidence.analysers.comments import IN_SOURCE, asks
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import ODD, dotted, environment, installed, module, said
from testigo.evidence.analysers.silences import Silences, silences
from testigo.evidence.analysers.sources import Sources
from testigo.evidence.reported import Reading, Unread
from testigo.evidence.streaming import Source, Walk
from testigo.rules.evidence import severity
from testigo.rules.evidence.paths import of_path
from testigo.rules.evidence.sealing import Draft
from testigo.rules.evidence.severity import Severity

__all__ = ["Ruff"]

RULES = "S,B,E,F"
NOT_RULES = "E501"
"""How long a line may be is no error, and every tree has its own number."""

# ruff calls every finding an error. As bandit has it, from which the rules S come:
HIGH = frozenset(
    {"S201", "S202", "S304", "S305", "S312", "S321", "S324", "S401", "S402", "S411", "S413", "S415"}
    | {"S501", "S502", "S503", "S507", "S602", "S605"}
)
LOW = frozenset({"S101", "S105", "S106", "S107", "S110", "S112", "S311", "S403", "S404", "S603", "S606", "S607"})

_UNREADABLE = frozenset({"E902", "invalid-syntax"})
_NOT_LINTED = "warning: Failed to lint "
_CODES = r"(?:\s*:\s*(?P<of>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)|(?!\s*:))"
_NOQA = re.compile(rf"#\s*noqa\b{_CODES}", re.I)
_IGNORE = re.compile(r"#\s*ruff:\s*ignore\[(?P<of>[^\[\]]*)\]")
_FILE = re.compile(rf"^\s*#\s*(?:ruff|flake8)\s*:\s*noqa\b{_CODES}", re.I)
_KEPT = frozenset({"code", "filename", "location", "end_location", "message", "name", "noqa_row", "url"})


class Ruff:
    """Runs ruff of our own environment. Its report is JSON; files that are not UTF-8 it names on its standard error."""

    name = "ruff"
    bounds = Bounds(seconds=300, memory_bytes=4 * 1024**3)

    def version(self) -> str:
        """The version of ruff. Raises NotFound if it is not installed."""
        return installed("ruff")

    def takes(self, path: str) -> bool:
        """Python source and stubs."""
        return path.endswith((".py", ".pyi"))

    def command(self, task: Task) -> Command | None:
        """Status 1 says that there are findings. Files that are named are looked at wherever they lie."""
        if not task.files:
            return None
        rules = ("--select", RULES, "--ignore", NOT_RULES)
        options = ("--isolated", "--ignore-noqa", "--no-force-exclude", "--no-cache", "--output-format", "json")
        args = module("ruff", "check", *rules, *options, *dotted(task.files))
        return Command(args, exits=frozenset({0, 1}), environment=environment(task.work))

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """Each finding with the lines that it is about; files without sense are failures, not findings."""
        if ended is None:
            return
        failed: dict[str, str] = {}
        sources = Sources(task.root)

        @lru_cache(maxsize=1)  # findings come file by file
        def about_the_file(path: str) -> tuple[tuple[str, ...], Silences]:
            lines = sources.every(path)
            return tuple(line for line in lines if _FILE.match(line)), silences(lines)

        root = str(task.root.resolve())
        with Source(ended.stdout, name="ruff's report") as source:
            walk = Walk(source)
            for _ in walk.elements():
                found = {name: walk.value() for name in walk.members() if name in _KEPT}
                try:
                    path = of_path(found["filename"], root=root)
                    place, end = found["location"], found["end_location"]
                    if found["code"] in _UNREADABLE:
                        failed.setdefault(path, str(found["message"]))
                    else:
                        yield _draft(found, path, place, end, sources, *about_the_file(path))
                except ODD as error:
                    raise walk.refused(f"ruff writes this otherwise: {error!r:.100}") from error
            walk.finish()
        for line in said(ended.stderr):
            if line.startswith(_NOT_LINTED):
                about = line.removeprefix(_NOT_LINTED)
                for path in (file for file in task.files if about.startswith((f"{file}: ", f"./{file}: "))):
                    failed.setdefault(path, about.rpartition(": ")[2])
        for path, reason in failed.items():
            yield Unread(path, reason, failed=True)


def _draft(
    found: dict[str, Any],
    path: str,
    place: dict[str, Any],
    end: dict[str, Any],
    sources: Sources,
    about_the_file: Iterable[str],
    about_ranges: Silences,
) -> Draft:
    is_asked = (
        asks(_FILE, about_the_file, found["code"])
        or _is_asked_of_line(found, sources.every(path))
        or about_ranges.about(found["code"], place["row"], end["row"])
    )
    how_bad = _severity(found["code"])
    return Draft(
        analyser=Ruff.name,
        rule=found["code"],
        rule_name=found.get("name"),
        severity=how_bad,
        level=severity.level_of(how_bad),
        message=found["message"],
        path=path,
        line=place["row"],
        column=place["column"],
        end_line=end["row"],
        end_column=end["column"],
        snippet=sources.lines(path, place["row"], end["row"]),
        suppressed=is_asked,
        metadata=({"help": found["url"]} if found.get("url") else {}) | (IN_SOURCE if is_asked else {}),
    )


def _is_asked_of_line(found: dict[str, Any], lines: Sequence[str]) -> bool:
    """Whether the line where ruff would look for a comment has one that is about the finding."""
    row = found.get("noqa_row")
    line = lines[row - 1 : row] if type(row) is int and row > 0 else ()
    return asks(_NOQA, line, found["code"]) or asks(_IGNORE, line, found["code"])


def _severity(rule: str) -> Severity:
    if rule in HIGH:
        return Severity.HIGH
    return Severity.MEDIUM if rule.startswith("S") and rule not in LOW else Severity.LOW
