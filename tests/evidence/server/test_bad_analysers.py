"""An analyser that lies, hangs, forks, fills the disk or the memory, or dies: each ends as a failed result that says
why, with nothing published of it and nobody of it left (issue *Bad input*).
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from testigo.evidence.analysers import Bounds, Command
from testigo.evidence.server.confined import Limits
from testigo.rules.evidence.coverage import Outcome
from tests.evidence.reports import result, run, sarif, written
from tests.evidence.server.serving import MIB, program, report, running, served
from tests.worker.kit import await_that

FILLS = """
for n in range(10**6):
    open(f"{os.environ['HOME']}/{n}", "wb").write(b"x" * 10**6)
"""
FAILS = [
    ("lies about a file outside", report({"path": "../../etc/passwd"}), "outside the folder"),
    ("lies about an absolute path", report({"path": "/etc/passwd"}), "outside the folder"),
    ("writes no JSON", "print('no findings, promise')\n", "semgrep's report"),
    ("writes half of its report", "print(" + repr('{"results": [{"check_id": "r"') + ")\n", "semgrep's report"),
    ("writes a name twice", "print(" + repr('{"results": [], "results": []}') + ")\n", "twice"),
    ("writes another shape", "print(" + repr('{"results": [{}]}') + ")\n", "otherwise"),
    ("writes nothing", "", "semgrep's report"),
    ("ends badly", report({}) + "sys.exit(3)\n", "status 3"),
    ("is killed", report({}) + "sys.stdout.flush()\nos.kill(os.getpid(), 9)\n", "proves nothing"),
    ("crashes", report({}) + "sys.stdout.flush()\nimport ctypes\nctypes.string_at(0)\n", "proves nothing"),
    ("hangs", "time.sleep(3600)\n", "longer than it may"),
    ("hangs, deaf", "import signal\nsignal.signal(15, lambda *a: 0)\ntime.sleep(3600)\n", "longer than it may"),
    ("fills the disk in many files", FILLS, "more than it may"),
    ("fills the disk in one file", "while True: print('x' * 10**6)\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "says"), [each[1:] for each in FAILS], ids=[each[0] for each in FAILS])
def test_it_fails_and_says_why(tmp_path: Path, source: str, says: str) -> None:
    """No findings, no file analysed, and the server goes on."""
    program(tmp_path, source)
    with served(tmp_path, run_seconds=3.0, run_bytes=16 * MIB) as it:
        manifest = it.result("a.py")
        assert (manifest.outcome, manifest.findings, manifest.pages) == (Outcome.FAILED, 0, 0)
        assert [each.path for each in manifest.coverage.failed] == ["a.py"]
        assert says in " ".join(manifest.reasons)
        assert sum(path.stat().st_size for path in it.server.runs.spool.folder.rglob("*") if path.is_file()) < MIB
        program(tmp_path, report({}))
        assert it.result("a.py", again="1").outcome is Outcome.COMPLETE


def test_what_it_does_not_name_was_not_looked_at(tmp_path: Path) -> None:
    """Findings are kept, and the result is incomplete (spec D-24)."""
    program(tmp_path, report({}, scanned=("a.py",)))
    with served(tmp_path, files={"a.py": "x\n", "b.py": "y\n"}) as it:
        manifest = it.result("a.py", "b.py", "gone.py")
        assert (manifest.outcome, manifest.findings) == (Outcome.INCOMPLETE, 1)
        assert {each.path for each in manifest.coverage.failed} == {"b.py", "gone.py"}


def test_what_the_report_of_another_tool_does_not_cover_is_incomplete(tmp_path: Path) -> None:
    """Files that it names as failed, and an error that is about none: the server was given no files to know better."""
    place = {"physicalLocation": {"artifactLocation": {"uri": "b.py"}}}
    for told, in_scope, why in (
        ({"locations": [place]}, 1, "of 1 files 0 were skipped and 1 failed"),
        ({}, 0, "no rules"),
    ):
        notification = {"level": "error", "message": {"text": "no rules"}, **told}
        invocation = {"executionSuccessful": True, "toolExecutionNotifications": [notification]}
        path = written(tmp_path, sarif(run(result(), invocations=[invocation])))
        with served(tmp_path) as it:
            manifest = it.result(analyser="sarif:tool", file=str(path))
            assert (manifest.outcome, manifest.findings) == (Outcome.INCOMPLETE, 1)
            assert (manifest.coverage.in_scope, manifest.reasons) == (in_scope, (why,))


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither at the end of a path nor on the way: what is outside is not even copied (spec D-15)."""
    program(tmp_path, "print(open(files[0]).read(), file=sys.stderr)\n" + report({}))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.py").write_text("secret\n")
    with served(tmp_path) as it:
        (it.tree / "link.py").symlink_to(tmp_path / "outside" / "b.py")
        (it.tree / "way").symlink_to(tmp_path / "outside")
        manifest = it.result("a.py", "link.py", "way/b.py")
        assert {each.path for each in manifest.coverage.failed} == {"link.py", "way/b.py"}
        assert manifest.coverage.analysed == 1


FORKS = """
def child(depth):
    if os.fork():
        return
    os.setsid()
    if depth:
        child(depth - 1)
    open(f"{os.environ['HOME']}/{os.getpid()}", "w").close()
    time.sleep(3600)
for _ in range(3):
    child(2)
while len(os.listdir(os.environ["HOME"])) < 9 + 2:
    time.sleep(0.01)
"""
"""Nine processes, each in a session of its own; the tenth ends while they sleep, beside two files of output."""


@pytest.mark.parametrize("is_confined", [True, False], ids=["confined", "open"])
@pytest.mark.parametrize("ending", [report({}), "time.sleep(3600)"], ids=["ends", "hangs"])
def test_nobody_whom_it_started_is_left(tmp_path: Path, is_confined: bool, ending: str) -> None:
    """Neither children of children nor those that went to a session of their own, when it ends or is ended."""
    program(tmp_path, FORKS + ending)
    with served(tmp_path, run_seconds=20.0 if ending.startswith("print") else 4.0) as it:
        if not is_confined:
            it.server.runs.confinement = ()
        manifest = it.result("a.py")
        assert manifest.outcome is (Outcome.COMPLETE if ending.startswith("print") else Outcome.FAILED)
        await_that(lambda: not running(tmp_path), "the end of everybody")


@pytest.mark.parametrize("is_confined", [True, False], ids=["confined", "open"])
def test_cancelled_nobody_is_left_either(tmp_path: Path, is_confined: bool) -> None:
    """A run that is cancelled ends what it started before it goes itself."""
    program(tmp_path, FORKS + "time.sleep(3600)")
    with served(tmp_path) as it:
        if not is_confined:
            it.server.runs.confinement = ()
        run = it.client.ask(it.request("a.py")).run
        await_that(lambda: len(running(tmp_path / "apart")) >= 10, "all of them")
        it.client.cancel(run)
        await_that(lambda: not running(tmp_path), "the end of everybody")


ENDING = """
import os, signal, sys
from pathlib import Path
from testigo.evidence.analysers import Command
from testigo.evidence.server import confined

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
look, work = confined._children, Path(sys.argv[1])

def look_and_be_told():
    os.kill(os.getpid(), signal.SIGTERM)
    return look()

confined._children = look_and_be_told
try:
    limits = confined.Limits(60.0, 0, 2**20)
    confined.run(Command(("/bin/sh", "-c", "sleep 3600 &")), root=work, work=work, limits=limits, confinement=())
finally:
    print(look())
"""


def test_told_to_end_while_it_ends_them_it_still_ends_all(tmp_path: Path) -> None:
    """A run that is cancelled just when its program has ended leaves nobody either."""
    done = subprocess.run([sys.executable, "-c", ENDING, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "[]\n")


def test_it_has_no_network_where_the_system_allows_that(tmp_path: Path) -> None:
    """And the provenance says which it was."""
    with socket.create_server(("127.0.0.1", 0)) as listener, served(tmp_path) as it:
        port = listener.getsockname()[1]
        tries = f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\nexcept OSError:\n"
        program(tmp_path, tries + "    print('[]')\n" + report({}))
        assert it.result("a.py").outcome is Outcome.FAILED if it.server.runs.confinement else Outcome.COMPLETE
        program(tmp_path, report({}))
        network = "none" if it.server.runs.confinement else "open"
        assert it.result("a.py", again="1").provenance["network"] == network


def test_it_reserves_no_more_memory_than_it_may(tmp_path: Path) -> None:
    """The system itself holds it to that."""
    (tmp_path / "work").mkdir()
    source = "x = bytearray(2**31)"
    command = Command((sys.executable, "-I", "-c", source), environment={"HOME": str(tmp_path)})
    limits = Limits.of(Bounds(30, 2**28), seconds_max=30, output_bytes_max=MIB)
    runner = f"""
from pathlib import Path
from testigo.evidence.analysers import Command
from testigo.evidence.server.confined import Limits, run
root = Path({str(tmp_path)!r})
command = Command({command.args!r}, environment={dict(command.environment)!r})
ended = run(command, root=root, work=root / "work", limits={limits!r}, confinement=())
print(ended.status, ended.stderr.read_text().splitlines()[-1])
"""
    done = subprocess.run([sys.executable, "-c", runner], capture_output=True, text=True, check=True)
    assert done.stdout == "1 MemoryError\n"


def test_a_short_report_that_becomes_a_large_result_is_not_kept(tmp_path: Path) -> None:
    """Each of its lines shows lines of the source, which are longer: the result is held to the room of its run."""
    many = report(*({"message": str(n), "last": 8} for n in range(3000)))
    program(tmp_path, many)
    with served(tmp_path, files={"a.py": ("x" * 1900 + "\n") * 8}, run_bytes=8 * MIB) as it:
        manifest = it.result("a.py")
        assert manifest.outcome is Outcome.FAILED
        assert manifest.reasons == ("its result could not be kept: File too large",)
