"""`testigo analyser` as a process, and its end by a kill that it cannot see coming."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.request import Request
from tests.evidence.server.serving import TOKEN

__all__ = ["Spawned", "spawned"]


@dataclass
class Spawned:
    """A server process, what it said first, and a client of it."""

    process: subprocess.Popen[str]
    said: dict[str, Any]
    client: AnalyserClient
    tree: Path

    def request(self, **options: str) -> Request:
        """A request about the one file of the tree."""
        return Request("semgrep", str(self.tree), ("a.py",), options)

    def kill(self) -> None:
        """End it as a machine does that runs out of memory."""
        self.process.kill()
        self.process.wait()


@contextmanager
def spawned(folder: Path, *arguments: str, **environment: str) -> Iterator[Spawned]:
    """A server whose spool, analysers, tree and root are in `folder`, on a free port; it is ended here, too."""
    (folder / "tree").mkdir(exist_ok=True)
    (folder / "tree" / "a.py").write_text("assert x\n")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TESTIGO_")}
    told = {
        "TESTIGO_URL": f"embedded:{folder / 'data'}",
        "TESTIGO_ANALYSER_TOKEN": TOKEN,
        "TESTIGO_ANALYSERS": str(folder / "apart"),
        **environment,
    }
    command = [sys.executable, "-m", "testigo", "analyser", "--json", f"--spool={folder / 'spool'}", *arguments]
    where = [] if "--socket" in arguments else ["--port", "0"]
    where += [] if "--root" in arguments else ["--root", str(folder)]
    with subprocess.Popen(
        [*command, *where],
        env={**inherited, **{name: value for name, value in told.items() if value}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            with AnalyserClient(said["address"], TOKEN) as client:
                yield Spawned(process, said, client, folder / "tree")
        finally:
            process.kill()
