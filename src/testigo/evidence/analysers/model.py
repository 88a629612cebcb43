"""What an analyser is: how its command line is made, its limits, and how its report is read.

An analyser's file holds these and nothing else. Who runs the command, where its output goes and how it is
held to its limits is the analyser server's; what becomes of the results is `gather`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from testigo.evidence.beneath import Place
from testigo.evidence.reported import Reading

__all__ = ["Analyser", "Bounds", "Command", "Ended", "Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a run is asked: files of one tree, and options of the analyser.

    `files` are canonical paths relative to `root`; `work` is an empty folder that only this run
    uses, and that whoever made it removes. `report` is the file of another tool that is read, if one is.
    """

    root: Path
    files: tuple[str, ...]
    work: Path
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    report: Place | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program to be run in the root of the tree, with nothing on its standard input.

    `environment` is all that it gets beside what the runner itself must give; `exits` are the
    statuses with which its report is whole.
    """

    args: tuple[str, ...]
    exits: frozenset[int] = frozenset({0})
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: its status, and the files that hold what it wrote."""

    status: int
    stdout: Path
    stderr: Path


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may use. No `memory_bytes` (0) is for programs that reserve far more than they use."""

    seconds: float = 600.0
    memory_bytes: int = 2 * 1024**3
    output_bytes: int = 512 * 1024**2


class Analyser(Protocol):
    """One source of findings or artifacts."""

    @property
    def name(self) -> str:
        """What requests and findings call it."""
        ...

    @property
    def bounds(self) -> Bounds:
        """What one of its runs may use."""
        ...

    def version(self) -> str:
        """The version of the program behind it. Raises NotFound if that is not installed."""
        ...

    def takes(self, path: str) -> bool:
        """Whether the file of that name is in its scope."""
        ...

    def command(self, task: Task) -> Command | None:
        """What is to be run for `task`; None if nothing is: the report is there already, or no file asks for it."""
        ...

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """What was found, attached and not analysed, `ended` being how the command ended, None if there was none.

        Memory is bounded whatever the report's size. Raises EvidenceInvalid for a report that
        cannot be read, naming its file and the place.
        """
        ...
