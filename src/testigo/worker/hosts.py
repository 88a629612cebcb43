"""This host and its processes: which one it is, whether a process of it is gone, and how to end its group (P-20).

A pid alone may belong to another process by now, so a process is named by its pid and its start. Both
mean something only within one boot and one namespace of pids, which the host's identity names as well.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from testigo.store.backend import Backend
from testigo.store.embedded.processes import Process, process

__all__ = ["Recorded", "identity", "is_gone", "is_group_gone", "kill_group", "own_processes", "recorded", "started"]

_RUNNER_MARK = b"TESTIGO_RUNNER=1"
"""What a keeper puts into the environment of its runners, and so into that of whatever they start."""

_WHOLE_GROUP = 4
"""PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9."""


class Recorded(NamedTuple):
    """What a session recorded of its processes on its host."""

    keeper: Process
    runners: tuple[Process, ...]


@lru_cache(maxsize=1)
def identity() -> str:
    """This host, as `NewSession.host` names it: machine, boot and namespace of pids; "" where nobody can tell."""
    if sys.platform == "darwin":
        names = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.uuid", "kern.bootsessionuuid"], capture_output=True, text=True, check=False
        )
        return "/".join(names.stdout.split())
    machine = _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id") or "-"
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
    return f"{machine}/{boot}/{namespace}" if boot else ""


def started(pid: int) -> str | None:
    """When a process that runs now began, in its system's own words; None where that cannot be read."""
    found = process(pid)
    return None if found is None else found.started


def own_processes(runners: Iterable[Process], backends: Iterable[Backend] = ()) -> dict[str, Any]:
    """What this process, a keeper, records of itself, its runners and the connections of its session."""
    return {
        "keeper": _told(Process(os.getpid(), started(os.getpid()) or "")),
        "runners": [_told(runner) for runner in runners],
        "backends": [{"pid": each.pid, "started": each.started.isoformat()} for each in backends],
    }


def recorded(processes: Mapping[str, Any]) -> Recorded | None:
    """What a session recorded, or None for what names no keeper of which one could tell that it is gone."""
    try:
        keeper, *runners = [
            Process(int(each["pid"]), str(each["started"]))
            for each in (processes["keeper"], *processes.get("runners", ()))
        ]
    except (KeyError, TypeError, ValueError):
        return None
    if any(each.pid <= 0 or not each.started for each in (keeper, *runners)):
        return None
    return Recorded(keeper, tuple(runners))


def is_gone(pid: int, started: str) -> bool:
    """Whether this very process runs no more: there is none of its pid, it has come to its end, or another began.

    What cannot be seen is not gone: a process of another user, or one without an entry in /proc.
    """
    if sys.platform != "linux":
        return _is_nobodys(pid) or ((found := process(pid)) is not None and found.started != started)
    with _opened(pid) as handle:
        if handle is None or _has_ended(handle):
            return True
        found = _stat(pid)
        return found is not None and found.started != started


def is_group_gone(pid: int, started: str) -> bool:
    """Whether a runner is gone, and so is whatever it started that stayed in its group."""
    return is_gone(pid, started) and not _left(pid)


def kill_group(pid: int, started: str) -> None:
    """SIGKILL a runner and its group, or what is left of the group.

    On Linux only what a keeper marked as a runner, and what that started, is ever killed: the number of a
    leader that is gone may be another group's, and what was recorded is data from outside.
    """
    if sys.platform != "linux":
        if not is_gone(pid, started):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        return
    with _opened(pid) as handle:
        found = _stat(pid)  # read after the handle was opened, so it is this process's or a later one's
        same = found is not None and found.started == started and _is_a_runners(pid)
        if handle is not None and same and not _has_ended(handle):
            _kill_led(handle, pid)
    for member in _left(pid):
        member.signal(signal.SIGKILL)


class _Stat(NamedTuple):
    """What /proc tells of a process that is needed here."""

    group: int
    session: int
    started: str


def _told(process: Process) -> dict[str, object]:
    return {"pid": process.pid, "started": process.started}


def _read(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


@contextmanager
def _opened(pid: int) -> Iterator[int | None]:
    """A handle on the process that has this pid; None where there is no such process.

    A number that only a thread or a group still has is no process. Raises `OSError` where the system does
    not say.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EINVAL, errno.ENOENT):
            raise
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _has_ended(handle: int) -> bool:
    """Whether every thread of the process is at its end, though its parent may not have heard of it."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))


def _kill_led(handle: int, pid: int) -> None:
    """Kill a group by its leader. A leader that is stopped keeps its number until it is killed, last."""
    with suppress(ProcessLookupError, PermissionError):
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL, None, _WHOLE_GROUP)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            signal.pidfd_send_signal(handle, signal.SIGSTOP)
            os.killpg(pid, signal.SIGKILL)
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def _left(group: int) -> list[Process]:
    """What a runner that led this group has left in it."""
    if sys.platform != "linux":
        return []
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == group:
            continue
        found = _stat(int(entry.name))
        if found is not None and group in (found.group, found.session) and _is_a_runners(int(entry.name)):
            members.append(Process(int(entry.name), found.started))
    return members


def _is_a_runners(pid: int) -> bool:
    try:
        return _RUNNER_MARK in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _stat(pid: int) -> _Stat | None:
    try:
        # The name in parentheses may hold blanks and parentheses; what follows the last one is regular.
        told = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return _Stat(int(told[2]), int(told[3]), told[19])


def _is_nobodys(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
