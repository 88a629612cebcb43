"""Any SARIF 2.1.0 file that another tool wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testigo.errors import EvidenceInvalid
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.reported import Reading
from testigo.evidence.sarif import read

__all__ = ["Sarif"]


class Sarif:
    """Reads the file that the option `file` names; `prefix` is the absolute path of the tree in it, if another."""

    name = "sarif"
    bounds = Bounds()

    def version(self) -> str:
        """The version of the standard that is read."""
        return "2.1.0"

    def takes(self, path: str) -> bool:
        """No file of the tree: what was analysed is the other tool's affair."""
        return False

    def command(self, task: Task) -> Command | None:
        """Nothing is run."""
        return None

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """The results of every run in the file. Raises EvidenceInvalid if none is named."""
        if "file" not in task.options:
            raise EvidenceInvalid("the SARIF file to read is not named", field="options.file")
        roots = (str(task.root), str(task.root.resolve()), *filter(None, [task.options.get("prefix")]))
        return read(Path(task.options["file"]), roots=tuple(dict.fromkeys(roots)), analyser=self.name)
