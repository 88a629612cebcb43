"""Bills of materials: made of a tree's pinned requirements by cyclonedx-py, or read from files, as Syft writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from testigo.errors import EvidenceInvalid
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import environment, installed, program, said
from testigo.evidence.beneath import Place
from testigo.evidence.reported import Attached, Reading, Trouble, Unread
from testigo.evidence.sbom.sanitise import MEDIA_TYPE, SBOM_BYTES_MAX, sanitised

__all__ = ["Cyclonedx", "CyclonedxPy"]

NAME = "sbom.cdx.json"
REQUIREMENTS = frozenset({"requirements.txt"})
ALONE = Path(__file__).with_name("alone_cyclonedx.py")
_LACKS = "not in the bill: "
_LINES_NAMED = 20


class CyclonedxPy:
    """Runs cyclonedx-py of our own environment, so that the same requirements give the same bytes.

    It reads the tree's `requirements.txt`, or the environment at the option `environment`. That one's Python is run, so
    whoever runs this has chosen it, and no request. No other file that the requirements name is read: it may lie
    anywhere.
    """

    name = "cyclonedx-py"
    bounds = Bounds(seconds=300, output_bytes=SBOM_BYTES_MAX)

    def version(self) -> str:
        """The version of cyclonedx-py. Raises NotFound if it is not installed."""
        return installed("cyclonedx-bom")

    def takes(self, path: str) -> bool:
        """A file of pinned requirements."""
        return PurePosixPath(path).name in REQUIREMENTS

    def command(self, task: Task) -> Command | None:
        """None without requirements and without an environment. Of several files the nearest to the root is read."""
        options = ("--output-reproducible", "--output-format", "JSON", "--spec-version", "1.6", "--no-validate")
        if "environment" in task.options:
            about: tuple[str, ...] = ("environment", *options, task.options["environment"])
        else:
            files = self._nearest_first(task)
            if not files:
                return None
            about = ("requirements", *options, f"./{files[0]}")
        return Command(program(ALONE, *about), environment=environment(task.work))

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """The one artifact, if anything was run; then what is not in it: lines of its file, and whole files."""
        if ended is not None:
            yield _attached(ended.stdout, "cyclonedx-py's report", task)
            files = self._nearest_first(task)
            if lines := [each.removeprefix(_LACKS) for each in said(ended.stderr) if each.startswith(_LACKS)]:
                named = ", ".join([*lines[:_LINES_NAMED], *(["…"] if len(lines) > _LINES_NAMED else [])])
                yield Trouble(f"what these lines of {files[0]} say is not in the bill: {named}")
            for path in files[0 if "environment" in task.options else 1 :]:
                yield Unread(path, "the bill is made of something else", failed=False)

    def _nearest_first(self, task: Task) -> list[str]:
        return sorted(filter(self.takes, task.files), key=lambda file: (file.count("/"), file))


class Cyclonedx:
    """Reads the CycloneDX JSON file that the option `file` names."""

    name = "cyclonedx"
    bounds = Bounds()

    def version(self) -> str:
        """The newest version of the format that is read."""
        return "1.7"

    def takes(self, path: str) -> bool:
        """No file of the tree."""
        return False

    def command(self, task: Task) -> Command | None:
        """Nothing is run."""
        return None

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """The one artifact. Raises EvidenceInvalid if no file is named."""
        if task.report is None:
            raise EvidenceInvalid("the CycloneDX file to read is not named", field="options.file")
        yield _attached(task.report, None, task)


def _attached(path: Path | Place, name: str | None, task: Task) -> Attached:
    sbom = sanitised(path, roots=(str(task.root), str(task.root.resolve())), name=name)
    return Attached(NAME, MEDIA_TYPE, sbom.body, sbom.raw_digest, {"cleaned": sbom.cleaned, "dangling": sbom.dangling})
