"""Runs an analyser's real program on a small tree, and gives what its report holds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from testigo.evidence.analysers import Analyser, Ended, Task, read
from testigo.evidence.reported import Reading, Unread
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.sealing import Draft, sealed

__all__ = ["UNSAFE", "findings", "readings", "task", "tree", "unread"]

UNSAFE = "import subprocess\n\n\ndef call(name):\n    assert name\n    subprocess.call('ls ' + name, shell=True)\n"


def tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A tree of those files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def task(root: Path, work: Path, *files: str, **options: str) -> Task:
    """A task about those files of the tree, or about all."""
    every = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    work.mkdir(exist_ok=True)
    return Task(root, files or tuple(every), work, options)


def readings(analyser: Analyser, about: Task) -> list[Reading]:
    """Everything in the report of a run, with the system's programs and the environment that the command names."""
    command = analyser.command(about)
    ended = None
    if command is not None:
        stdout, stderr = about.work / "stdout", about.work / "stderr"
        with stdout.open("wb") as out, stderr.open("wb") as err:
            done = subprocess.run(
                command.args,
                cwd=about.root,
                env={"PATH": os.defpath, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                check=False,
            )
        ended = Ended(done.returncode, stdout, stderr)
    return list(read(analyser, about, command, ended))


def findings(found: list[Reading]) -> list[Finding]:
    """The findings, sealed."""
    return sealed(each for each in found if isinstance(each, Draft))


def unread(found: list[Reading]) -> dict[str, bool]:
    """The files that were not analysed, and whether the analyser failed on them."""
    return {each.path: each.failed for each in found if isinstance(each, Unread)}
