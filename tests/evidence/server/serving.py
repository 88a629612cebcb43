"""An analyser server on a Unix socket, and analysers that do as a test says.

The program of semgrep is looked for in a folder of its own, so a test puts a script of its own there: what the server
runs is a real program, with whatever manners.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testigo.evidence.server.door import Server
from testigo.evidence.server.roots import Granted
from testigo.evidence.server.runs import Terms
from testigo.evidence.server.serving import opened
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pulling import Pulled, pull
from testigo.evidence.transport.request import Request

__all__ = ["MIB", "TOKEN", "Served", "program", "report", "running", "served"]

MIB = 1024**2
TOKEN = "a-token-of-the-tests"
PATIENCE_SECONDS = 120.0


@dataclass
class Served:
    """A server, a client of it, and a tree that it looks at."""

    server: Server
    client: AnalyserClient
    tree: Path
    folder: Path

    def request(self, *files: str, analyser: str = "semgrep", **options: str) -> Request:
        """A request about files of the tree."""
        return Request(analyser, str(self.tree), tuple(sorted(files)), options)

    def result(self, *files: str, analyser: str = "semgrep", **options: str) -> Manifest:
        """What comes of it."""
        return self.client.result(self.request(*files, analyser=analyser, **options), within_seconds=PATIENCE_SECONDS)

    def pulled(self, manifest: Manifest) -> Pulled:
        """The result, brought here."""
        return pull(self.client, manifest, self.folder / f"pulled-{len(list(self.folder.glob('pulled-*')))}")

    def held(self) -> list[str]:
        """What lies in the spool, below the folder of each run."""
        folder = self.server.runs.spool.folder
        # A folder may go while it is looked into: `os.walk` then passes over it.
        found = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
        return sorted(str(path.relative_to(folder)) for path in found)


@contextmanager
def served(
    folder: Path, *, files: dict[str, str] | None = None, capacity_bytes: int = 0, **terms: Any
) -> Iterator[Served]:
    """A server with its spool, its keys and its tree in `folder`, at all of which it may look."""
    tree = folder / "tree"
    for name, content in (files or {"a.py": "assert x\n"}).items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    looks = Granted((folder.resolve(),))
    granted = Terms(
        **{"run_bytes": 32 * MIB, "apart": folder / "apart", "keys": folder / "keys", "granted": looks, **terms}
    )
    capacity = capacity_bytes or 256 * MIB
    with opened(granted, TOKEN, path=folder / "s", spool=folder / "spool", capacity_bytes=capacity) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            with AnalyserClient(server.address, TOKEN) as client:
                yield Served(server, client, tree, folder)
        finally:
            server.shutdown()


def program(folder: Path, source: str) -> None:
    """Have the analyser semgrep be this Python program, which finds `report` and its files ready to use."""
    home = folder / "apart" / "semgrep"
    (home / "lib/python3/site-packages/semgrep-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    (home / "bin").mkdir(exist_ok=True)
    head = f"#!{sys.executable} -I\nimport json, os, sys, time\nfiles = [a for a in sys.argv if a.startswith('./')]\n"
    script = home / "bin" / "semgrep"
    script.write_text(head + source)
    script.chmod(0o700)


def report(*results: dict[str, Any], scanned: tuple[str, ...] = ("a.py",)) -> str:
    """A program that writes a report of semgrep with these results."""
    told = {"results": [_result(**each) for each in results], "errors": [], "paths": {"scanned": list(scanned)}}
    return f"print({json.dumps(told)!r})\n"


def _result(
    path: str = "a.py",
    line: int = 1,
    last: int = 0,
    rule: str = "r",
    message: str = "m",
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "check_id": rule,
        "path": path,
        "start": {"line": line, "col": 1},
        "end": {"line": last or line, "col": 2},
        "extra": {"severity": "ERROR", "message": message, "metadata": metadata or {}},
    }


def running(folder: Path) -> list[int]:
    """The processes whose command line names something below `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found
