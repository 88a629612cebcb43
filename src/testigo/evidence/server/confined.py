"""A program run so that it can do little harm: no network, nothing left behind, and no more than it may use.

What the system allows is found out once. With it the program has namespaces of its own for network and processes, so
that whatever it started dies with it; without it, its children are looked for and ended, and the network is open,
which the provenance of the result says.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import EvidenceInvalid
from testigo.evidence.analysers import Bounds, Command, Ended
from testigo.evidence.server.spool import size_of

__all__ = ["Limits", "die_with_parent", "how_confined", "run"]

LOOK_SECONDS = 0.1
"""How often a program is looked at that runs: what it has written so far, and for how long it ran."""

_RUN = """
read -r pid name state parent rest < /proc/self/stat && read -r name < "/proc/$parent/comm" && [ "$name" = unshare ] &&
    { "$@"; exit $?; }
exit 1
"""
"""The shell is the first process of its namespace, to which signals do not do what a program expects of them.

It runs nothing once its parent is gone: that may have been killed just before the shell was to die with it.
"""
_UNSHARE = ("--net", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--", "/bin/sh", "-c", _RUN, "sh")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; 0 bytes of memory is no limit."""

    seconds: float
    memory_bytes: int
    output_bytes: int

    @classmethod
    def of(cls, bounds: Bounds, *, seconds_max: float, output_bytes_max: int) -> Limits:
        """What an analyser asks for, as far as the server gives it."""
        return cls(min(bounds.seconds, seconds_max), bounds.memory_bytes, min(bounds.output_bytes, output_bytes_max))


def how_confined() -> tuple[str, ...]:
    """The beginning of a command line that takes network and other processes away; empty where nothing does."""
    unshare = shutil.which("unshare", path=_PATH)
    if unshare is None or sys.platform != "linux":
        return ()
    for more in ((), ("--user", "--map-root-user")):
        way = (unshare, *more, *_UNSHARE)
        with suppress(OSError, subprocess.SubprocessError):
            quiet = subprocess.DEVNULL
            if not subprocess.run((*way, "true"), stdin=quiet, stdout=quiet, stderr=quiet, timeout=10).returncode:
                return way
    return ()


def run(command: Command, *, root: Path, work: Path, limits: Limits, confinement: tuple[str, ...]) -> Ended:
    """Run the command to its end in `root`, its output in files of `work`, and end whatever it started.

    For a process of one thread. Raises `EvidenceInvalid` naming the limit that it broke: seconds, or output; and
    `SystemExit` if the process was told to end by SIGTERM meanwhile.
    """
    _adopt()
    stdout, stderr = work / "stdout", work / "stderr"
    told: list[int] = []
    # Who is told to end meanwhile does so when all is ended, and not in the middle of that.
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        status = _carried_out(command, root, (stdout, stderr), work, limits, confinement, told)
    finally:
        signal.signal(signal.SIGTERM, before)
    if told:
        sys.exit(1)
    return Ended(status, stdout, stderr)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; leave if that has happened already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _carried_out(
    command: Command,
    root: Path,
    output: tuple[Path, Path],
    work: Path,
    limits: Limits,
    confinement: tuple[str, ...],
    told: list[int],
) -> int:
    """The program's status; when this returns or raises, it and all that it started are gone."""
    us = os.getpid()
    with output[0].open("xb") as out, output[1].open("xb") as err:
        process = subprocess.Popen(
            (*confinement, *command.args),
            cwd=root,
            env={"PATH": _PATH, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=lambda: _limit(limits, us),
        )
    try:
        _watch(process, work, limits, told)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _end_children()
    return process.returncode


def _watch(process: subprocess.Popen[bytes], work: Path, limits: Limits, told: list[int]) -> None:
    """Wait until it ends, or until somebody tells us to. Raises `EvidenceInvalid` for a limit that it broke."""
    until = time.monotonic() + limits.seconds
    while not told:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
        if size_of(work) > limits.output_bytes:
            raise EvidenceInvalid("it wrote more than it may", field="output", limit=f"{limits.output_bytes} bytes")
        if process.returncode is not None:
            return
        if time.monotonic() > until:
            raise EvidenceInvalid("it took longer than it may", field="seconds", limit=f"{limits.seconds:g} seconds")


def _limit(limits: Limits, parent: int) -> None:
    """In the new process, before the program: what the system itself holds it to."""
    die_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.umask(0o077)
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.output_bytes),
        (resource.RLIMIT_AS, limits.memory_bytes or resource.RLIM_INFINITY),
    ):
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            most = hard if most == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError):  # not every system limits all of this
            resource.setrlimit(what, (most, most))


def _adopt() -> None:
    """Have orphans among our descendants become our children, whatever session they went to."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _end_children() -> None:
    """Kill children until there are none: each generation of orphans becomes ours once its parents are gone."""
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    us = os.getpid()
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == us:
                found.append(int(entry.parent.name))
    return found
