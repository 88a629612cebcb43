"""This host's processes: who is gone, who only cannot be seen, and who is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from testigo.rules import fields
from testigo.store.backend import Backend
from testigo.store.embedded.processes import Process
from testigo.worker import hosts
from testigo.worker.hosts import Recorded, identity, is_gone, is_group_gone, kill_group, started
from tests.worker.kit import await_that

Running = subprocess.Popen[str]
Start = Callable[..., Running]

SLEEPS = "import time; print('ready', flush=True); time.sleep(600)"
HAS_A_CHILD = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEPS!r}], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""
ONLY_ITS_MAIN_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python processes that say a line first, as a keeper starts its runners; all are killed in the end."""
    begun: list[Running] = []

    def begin(code: str, mark: Mapping[str, str] = {"TESTIGO_RUNNER": "1"}, **options: Any) -> Running:
        environment = {name: value for name, value in os.environ.items() if name != "TESTIGO_RUNNER"}
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**environment, **mark},
            **options,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def said(process: Running) -> str:
    """The next line that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def start_of(process: Running) -> str:
    """When it began; it runs, or nobody has read its end."""
    found = started(process.pid)
    assert found is not None
    return found


def test_a_host_has_one_name_that_a_session_can_bear() -> None:
    """The same for every process that shares its boot and its pids (spec P-20)."""
    own = identity()
    fields.key(own, field="session.host")
    code = "from testigo.worker.hosts import identity; print(identity())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == own


@pytest.mark.needs_mount
def test_another_namespace_of_pids_is_another_host() -> None:
    """A container that shares the machine and its boot has pids of its own (spec P-20)."""
    code = "from testigo.worker.hosts import identity; print(identity())"
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    inside = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert inside.rpartition("/")[0] == identity().rpartition("/")[0]
    assert inside != identity()


def test_who_runs_is_not_gone_even_if_it_stands_still(start: Start) -> None:
    """Nor is one that was stopped: it may go on at any time (spec P-20)."""
    process = start(SLEEPS)
    said(process)
    began = start_of(process)
    assert not is_gone(process.pid, began)
    process.send_signal(signal.SIGSTOP)
    assert not is_gone(process.pid, began)
    assert not is_gone(os.getpid(), started(os.getpid()) or "")


def test_who_has_ended_is_gone_whether_its_parent_has_heard_of_it_or_not(start: Start) -> None:
    """A zombie does nothing, and may stay for ever where nobody reads its end (spec P-20)."""
    process = start(SLEEPS)
    said(process)
    began = start_of(process)
    process.kill()
    await_that(lambda: is_gone(process.pid, began), "the end")
    assert process.returncode is None
    process.wait()
    assert is_gone(process.pid, began)


def test_a_pid_that_another_has_by_now_is_not_the_process(start: Start) -> None:
    """Its start tells them apart (spec P-20)."""
    process = start(SLEEPS)
    said(process)
    assert is_gone(process.pid, "1")


@pytest.mark.needs_linux
def test_a_number_that_only_a_thread_has_is_no_process() -> None:
    """Pids and the numbers of threads are dealt from one pack (spec P-20)."""
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    assert thread.native_id is not None
    assert is_gone(thread.native_id, "1")
    ends.set()
    thread.join()


@pytest.mark.needs_linux
def test_a_process_of_which_one_thread_runs_is_not_gone(start: Start) -> None:
    """Though its main thread is at its end, and /proc calls it a zombie (spec P-20)."""
    process = start(ONLY_ITS_MAIN_THREAD_ENDS)
    said(process)
    await_that(lambda: started(process.pid) is None, "the end of its main thread")
    found = hosts._stat(process.pid)
    assert found is not None
    assert not is_gone(process.pid, found.started)


def test_what_cannot_be_seen_is_not_gone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /proc hides others' processes, an entry that is missing proves nothing (spec P-20)."""
    process = start(SLEEPS)
    said(process)
    monkeypatch.setattr(hosts, "_stat", lambda _: None)
    monkeypatch.setattr(hosts, "process", lambda _: None)
    assert not is_gone(process.pid, "1")
    kill_group(process.pid, "1")
    assert process.poll() is None


@pytest.mark.needs_root
def test_who_may_not_signal_a_process_knows_that_it_is_not_gone(start: Start) -> None:
    """EPERM is an answer about rights, and not about the process (spec P-20)."""
    process = start(SLEEPS)
    said(process)
    code = f"""
import os
from testigo.worker.hosts import is_gone, kill_group
os.setgroups([]), os.setgid(65534), os.setuid(65534)
kill_group({process.pid}, {start_of(process)!r})
print(is_gone({process.pid}, {start_of(process)!r}))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (answer.stdout.strip(), process.poll()) == ("False", None)


@pytest.mark.parametrize("old_kernel", [False, pytest.param(True, marks=pytest.mark.needs_linux)])
def test_a_runner_is_killed_with_its_group(start: Start, monkeypatch: pytest.MonkeyPatch, old_kernel: bool) -> None:
    """Whatever it started goes with it, also where the kernel cannot signal a group by a handle (spec P-20)."""
    if old_kernel:
        monkeypatch.setattr(hosts, "_WHOLE_GROUP", 1 << 20)  # a flag that no kernel knows
    leader = start(HAS_A_CHILD)
    child = int(said(leader))
    began, childs = start_of(leader), started(child)
    assert childs is not None
    assert not is_group_gone(leader.pid, began)
    kill_group(leader.pid, began)
    await_that(lambda: is_gone(leader.pid, began) and is_gone(child, childs), "the end of both")
    assert is_group_gone(leader.pid, began)


@pytest.mark.needs_linux
def test_what_a_dead_runner_left_in_its_group_is_killed(start: Start) -> None:
    """It goes on after its runner's death, and is part of what must be gone (spec P-20)."""
    leader = start(HAS_A_CHILD)
    child = int(said(leader))
    began, childs = start_of(leader), started(child)
    assert childs is not None
    leader.kill()
    leader.wait()
    assert is_gone(leader.pid, began)
    assert not is_group_gone(leader.pid, began)
    kill_group(leader.pid, began)
    await_that(lambda: is_group_gone(leader.pid, began), "the end of the group")
    assert is_gone(child, childs)


@pytest.mark.needs_linux
def test_nobody_but_a_runner_is_killed(start: Start) -> None:
    """What a session recorded is data from outside: another start, or a process that no keeper started, is left
    alone (spec P-20)."""
    runner, stranger = start(SLEEPS), start(SLEEPS, {})
    said(runner), said(stranger)
    kill_group(runner.pid, "1")
    kill_group(stranger.pid, start_of(stranger))
    assert (runner.poll(), stranger.poll()) == (None, None)


def test_what_a_keeper_records_is_read_as_it_was_meant() -> None:
    """Itself, its runners, and the connections of its session (spec P-10, P-20)."""
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    told = hosts.own_processes([Process(7, "70"), Process(8, "80")], [Backend(9, at)])
    keeper = Process(os.getpid(), started(os.getpid()) or "")
    assert hosts.recorded(told) == Recorded(keeper, (Process(7, "70"), Process(8, "80")))
    assert told["backends"] == [{"pid": 9, "started": "2026-05-01T12:00:00+00:00"}]


@pytest.mark.parametrize(
    "processes",
    [
        {},
        {"keeper": 1},
        {"keeper": {"pid": 1}},
        {"keeper": {"pid": "x", "started": "1"}},
        {"keeper": {"pid": 0, "started": "1"}},
        {"keeper": {"pid": -1, "started": "1"}},
        {"keeper": {"pid": 1, "started": ""}},
        {"keeper": {"pid": 1, "started": "1"}, "runners": [None]},
        {"keeper": {"pid": 1, "started": "1"}, "runners": 3},
        {"keeper": {"pid": 1, "started": "1"}, "runners": [{"pid": 0, "started": "1"}]},
    ],
)
def test_what_names_no_processes_is_nothing_to_act_on(processes: dict[str, Any]) -> None:
    """Another release may have recorded it, or another program: the session is left to its beats (spec P-20)."""
    assert hosts.recorded(processes) is None
