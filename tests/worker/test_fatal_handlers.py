"""What ends a runner or leaves it without a keeper is seen from outside, and leaves nothing behind (P-20, R20)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testigo.errors import ProtocolBroken
from tests.worker.scripted_keeper import ScriptedKeeper

FATAL = """
import asyncio
import ctypes
import os
import pathlib
import time

@app.job("exits")
async def exits(ctx: AsyncContext) -> None:
    os._exit(17)

@app.job("segfaults")
def segfaults(ctx: Context) -> None:
    ctypes.string_at(0)

@app.job("aborts")
def aborts(ctx: Context) -> None:
    os.abort()

@app.job("closes")
async def closes(ctx: AsyncContext) -> None:
    os.closerange(3, 1024)

@app.job("closes-in-thread")
def closes_in_thread(ctx: Context) -> None:
    os.closerange(3, 1024)

@app.job("blocks")
async def blocks(ctx: AsyncContext) -> None:
    pathlib.Path("begun").touch()
    time.sleep(60)

@app.job("hogs")
def hogs(ctx: Context) -> None:
    pathlib.Path("begun").touch()
    ctypes.PyDLL(None).sleep(60)  # the C library's, called without letting go of the interpreter

@app.job("starts")
async def starts(ctx: AsyncContext) -> None:
    child = await asyncio.create_subprocess_exec("sleep", "60")
    pathlib.Path("begun").write_text(str(child.pid))
    await child.wait()

@app.job("writes")
def writes(ctx: Context) -> None:
    for descriptor in range(200, 210):
        try:
            os.write(descriptor, b"nonsense" * 10)
        except OSError:
            continue
"""


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("exits", 17),
        ("segfaults", -signal.SIGSEGV),
        ("aborts", -signal.SIGABRT),
        ("closes", 4),
        ("closes-in-thread", 4),
    ],
)
def test_what_ends_the_process_is_seen_by_its_status(tmp_path: Path, kind: str, status: int) -> None:
    """The keeper needs no word of it (field case R20)."""
    with ScriptedKeeper(tmp_path, FATAL) as keeper:
        keeper.run(kind)
        assert keeper.exit_status() == status


def test_writing_to_the_protocol_breaks_this_conversation_only(tmp_path: Path) -> None:
    """The keeper reads what is no frame."""
    with ScriptedKeeper(tmp_path, FATAL) as keeper:
        keeper.hear("hello")
        ticket = keeper.run("writes")
        with pytest.raises(ProtocolBroken):
            keeper.end_of(ticket)


@pytest.mark.parametrize("kind", ["blocks", "starts"])
def test_a_runner_and_what_it_started_end_with_the_conversation(tmp_path: Path, kind: str) -> None:
    """Even while a handler blocks the loop."""
    with ScriptedKeeper(tmp_path, FATAL) as keeper:
        keeper.run(kind)
        begun = content_of(tmp_path / "begun")
        keeper.socket.close()
        assert keeper.exit_status() == -signal.SIGKILL
        if begun:
            assert_gone(int(begun))


KEEPER = """
import pathlib, sys, time
from tests.worker.scripted_keeper import ScriptedKeeper
from tests.worker.test_fatal_handlers import FATAL

with ScriptedKeeper(pathlib.Path.cwd(), FATAL) as keeper:
    keeper.run("hogs")
    print(keeper.process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.needs_linux
def test_a_runner_whose_interpreter_is_held_dies_with_its_keeper(tmp_path: Path) -> None:
    """The kernel sees to it (P-20)."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    with keeper:
        assert keeper.stdout is not None
        runner = int(keeper.stdout.readline())
        content_of(tmp_path / "begun")
        keeper.kill()
        assert_gone(runner)


def content_of(path: Path) -> str:
    """The file's text, once it is there."""
    eventually(path.exists)
    return path.read_text()


def assert_gone(process: int) -> None:
    """The process ends within a minute and a half; one that only waits to be reaped has ended."""
    eventually(lambda: is_gone(process))


def is_gone(process: int) -> bool:
    """Whether the process has ended."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        return False


def eventually(happens: Callable[[], bool]) -> None:
    """Waits until this happens, a minute and a half at most."""
    deadline = time.monotonic() + 90
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)
