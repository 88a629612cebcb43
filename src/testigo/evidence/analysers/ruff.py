"""ruff: its rules of safety (S), of likely errors (B, E, F), whatever the tree's own settings say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import ODD, dotted, environment, installed, module, said
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
_KEPT = frozenset({"code", "filename", "location", "end_location", "message", "name", "url"})


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
        """Status 1 says that there are findings."""
        if not task.files:
            return None
        options = ("--isolated", "--no-cache", "--select", RULES, "--ignore", NOT_RULES, "--output-format", "json")
        args = module("ruff", "check", *options, *dotted(task.files))
        return Command(args, exits=frozenset({0, 1}), environment=environment(task.work))

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """Each finding with the lines that it is about; files without sense are failures, not findings."""
        if ended is None:
            return
        failed: dict[str, str] = {}
        sources = Sources(task.root)
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
                        yield _draft(found, path, place, end, sources)
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


def _draft(found: dict[str, Any], path: str, place: dict[str, Any], end: dict[str, Any], sources: Sources) -> Draft:
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
        metadata={"help": found["url"]} if found.get("url") else {},
    )


def _severity(rule: str) -> Severity:
    if rule in HIGH:
        return Severity.HIGH
    return Severity.MEDIUM if rule.startswith("S") and rule not in LOW else Severity.LOW
