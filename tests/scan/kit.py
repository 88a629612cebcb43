"""A whole scan with real processes, which a test can hold at a step of its publication and kill there.

Between the worker and the analyser server stands a gate: it passes everything on, says what was asked, and holds
what the test tells it to hold. Nothing else is not as it is for users.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from testigo.evidence.analyses import begin_analysis
from testigo.evidence.listing import AnalysisDetail, analysis
from testigo.evidence.model import NewAnalysis
from testigo.evidence.publication import persisted
from testigo.evidence.transport import places
from testigo.scan.plan import Wanted, plan
from testigo.scan.scope import scope
from tests.worker.kit import PATIENCE_SECONDS, WorkerProcess, await_that, children_of
from tests.world import World

__all__ = ["QUEUE", "Asked", "Scene", "scene", "tree"]

QUEUE = "scan"
TOKEN = "the-token-of-these-tests"
LOG_CHARACTERS = 8_000

FILES = {
    "shop/orders.py": """
import os

def run(name):
    os.system("ls " + name)
    return eval(name)
""",
    "shop/stock.py": """
import hashlib
import pickle

def key(data):
    return hashlib.md5(pickle.loads(data)).digest()
""",
    "README": "Nothing to see.",
}


@dataclass(frozen=True)
class Asked:
    """A question to the analyser server: which step it is, the status of the answer, and what was published by then."""

    step: str
    status: int
    persisted: bool


def tree(folder: Path) -> Path:
    """A small tree with something to find."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


class Gate(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Passes on what it is asked, to the server at a Unix socket; holds one step, if a test says so."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target = target
        self.asked: list[Asked] = []
        self.holds: str | None = None
        self.changes: Callable[[str, bytes], bytes] = lambda step, answer: answer
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.is_persisted: Callable[[], bool] = lambda: False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """What the worker is told."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def hold(self, step: str) -> None:
        """Hold whoever comes to this step, until `open`."""
        self.holds = step

    def open(self) -> None:
        """Hold nobody any more."""
        self.holds = None
        self.opened.set()

    def steps(self, step: str) -> list[Asked]:
        """What was asked of one step, in its order."""
        return [each for each in self.asked if each.step == step]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked was killed."""


class _Passing(BaseHTTPRequestHandler):
    server: Gate
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""

    def do_GET(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    def do_DELETE(self) -> None:
        self._pass()

    def _pass(self) -> None:
        gate = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        step = _step(self.command, self.path)
        persisted_by_then = gate.is_persisted()
        if gate.holds == step:
            gate.reached.set()
            gate.opened.wait(PATIENCE_SECONDS)
        status, answer = 0, b""
        with closing(_Unix(gate.target)) as connection, suppress(OSError, http.client.HTTPException):
            connection.request(self.command, self.path, body, {"Authorization": self.headers["Authorization"]})
            answered = connection.getresponse()
            status, answer = answered.status, answered.read()
        answer = gate.changes(step, answer)
        gate.asked.append(Asked(step, status, persisted_by_then))
        self.close_connection = True
        if status:
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", str(len(answer)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer)


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _step(command: str, path: str) -> str:
    for step, pattern in _STEPS.items():
        if re.search(pattern, path):
            return "cancel" if command == "DELETE" else step
    return "ask"


_STEPS = {"page": r"/pages\?", "ack": r"/ack$", "artifact": r"/artifacts/", "look": r"/v1/runs/[^/?]+"}


@dataclass
class Scene:
    """An installation, a tree, an analyser server behind a gate, and a worker."""

    world: World
    url: str
    folder: Path
    gate: Gate
    worker: WorkerProcess = field(init=False)
    server: subprocess.Popen[bytes] = field(init=False)
    new: NewAnalysis = field(init=False)

    def serve(self) -> None:
        """Start an analyser server where the last one was."""
        words = ["analyser", "serve", "--socket", str(self.gate.target), "--spool", str(self.folder / "spool")]
        words += ["--root", str(self.folder / "tree")]
        environment = {**os.environ, "TESTIGO_URL": self.url, "TESTIGO_KEYS": str(self.folder / "keys")}
        environment[places.TOKEN_VARIABLE] = TOKEN
        self.gate.target.unlink(missing_ok=True)
        with (self.folder / "analyser.log").open("ab") as log:
            command = [sys.executable, "-m", "testigo", *words]
            self.server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        await_that(self.gate.target.exists, "an analyser server")

    def work(self) -> None:
        """Start a worker with a publisher, and wait until both can work."""
        log = self.folder / f"worker-{len(list(self.folder.glob('worker-*')))}.log"
        words = ["testigo.scan.jobs:app", "--queues", QUEUE, "--runners", "1"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TESTIGO_")}
        environment |= {"TESTIGO_KEYS": str(self.folder / "keys"), places.ADDRESS_VARIABLE: self.gate.address}
        environment |= {places.TOKEN_VARIABLE: TOKEN}
        command = [sys.executable, "-m", "testigo.worker", *words, "--url", self.url]
        with log.open("ab") as output:
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=output, stderr=output)
        self.worker = WorkerProcess(process, log)
        await_that(self.publisher, "a publisher")

    def begin(self, *analysers: str) -> None:
        """Begin an analysis of the tree."""
        found = scope(self.folder / "tree")
        self.new = plan(found, Wanted("shop", analysers or ("ruff",), queue=QUEUE), apart=self.folder / "apart")
        self.gate.is_persisted = lambda: self.world.db.run(persisted, self.new.id) is not None
        self.world.db.run(begin_analysis, self.new, action=self.world.action())

    def publisher(self) -> int | None:
        """The pid of the worker's publisher; None while there is none."""
        for pid in children_of(self.worker.pid):
            with suppress(OSError):
                if b"testigo.worker.publisher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None

    def kill_publisher(self) -> None:
        """SIGKILL."""
        pid = self.publisher()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def kill_worker(self) -> None:
        """SIGKILL of the keeper, with which its children die; another one starts."""
        self.worker.signal(signal.SIGKILL)
        self.worker.process.wait()
        self.work()

    def kill_server(self) -> None:
        """SIGKILL of the analyser server, and all that it held is gone; another one starts."""
        self.server.kill()
        self.server.wait()
        self.serve()

    def detail(self) -> AnalysisDetail:
        """The analysis as it stands."""
        return self.world.db.run(analysis, self.new.id)

    def close(self) -> None:
        """End all processes."""
        self.gate.open()
        if hasattr(self, "worker"):
            self.worker.destroy()
        if hasattr(self, "server"):
            self.server.kill()
            self.server.wait()
        self.gate.shutdown()
        self.gate.server_close()


@contextmanager
def scene(world: World, url: str, folder: Path) -> Iterator[Scene]:
    """A scene whose server and worker run."""
    tree(folder / "tree")
    it = Scene(world, url, folder, Gate(folder / "a.sock"))
    try:
        it.serve()
        it.work()
        yield it
    except BaseException:
        for log in sorted(folder.glob("*.log")):  # what failed is to be read with the failure
            print(f"--- {log.name}\n{log.read_text('utf-8', errors='replace')[-LOG_CHARACTERS:]}")
        raise
    finally:
        it.close()
