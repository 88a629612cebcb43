"""Any SARIF 2.1.0 file that another tool wrote."""

from __future__ import annotations

from collections.abc import Iterator

from testigo.errors import EvidenceInvalid
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.reported import Reading
from testigo.evidence.sarif import read

__all__ = ["Sarif"]


class Sarif:
    """Reads what one tool wrote in the file at the option `file`: `sarif:codeql` for CodeQL, and alone without a name.

    Each tool is an analyser of its own, for the findings of one vanish only where that one reports again. The option
    `prefix` is the absolute path of the tree in the file, if it is another.
    """

    bounds = Bounds()

    def __init__(self, tool: str = "") -> None:
        self._tool = tool
        self.name = f"sarif:{tool}" if tool else "sarif"

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
        """The results of every run of the tool in the file. Raises EvidenceInvalid if none is named."""
        if task.report is None:
            raise EvidenceInvalid("the SARIF file to read is not named", field="options.file")
        roots = (str(task.root), str(task.root.resolve()), *filter(None, [task.options.get("prefix")]))
        return read(task.report, roots=tuple(dict.fromkeys(roots)), analyser=self.name, tool=self._tool)
