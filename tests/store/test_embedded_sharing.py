"""The processes of one directory share one server, and each of them may be killed at any time (spec P-31)."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from testigo.store.embedded import EmbeddedServer
from tests.store.embedded_user import User, connect, lives, postmaster, until


def test_the_first_starts_it_others_join_and_the_last_to_leave_stops_it(directory: Path) -> None:
    """The server runs from its first user's coming to its last user's going, for all the same (spec P-31)."""
    with User(directory) as first, User(directory) as second:
        assert first.url == second.url
        first.leave()
        assert second.ask("SELECT 1") == 1
        assert lives(directory)
        second.leave()
        assert not lives(directory)


def test_six_users_killed_in_random_order_take_nothing_from_a_seventh(directory: Path) -> None:
    """A user's SIGKILL leaves the others' connections alone, and the last who leaves still knows it (spec P-31)."""
    with ExitStack() as stack:
        survivor, *others = [stack.enter_context(User(directory)) for _ in range(7)]
        survivor.ask("CREATE TABLE kept AS SELECT 7 AS n")
        for other in others:
            assert other.ask("SELECT n FROM kept") == 7
        for other in random.sample(others, len(others)):
            other.kill()
            assert survivor.ask("SELECT n FROM kept") == 7
        survivor.leave()
        assert not lives(directory)


def test_a_server_whose_users_were_all_killed_is_joined_by_the_next(directory: Path) -> None:
    """Nobody is left to stop it, so it runs on; who comes next joins it and stops it (spec P-31)."""
    with User(directory) as killed:
        assert killed.url
        server = postmaster(directory)
        killed.kill()
    assert lives(directory)
    with EmbeddedServer.use(directory):
        assert postmaster(directory) == server
    assert not lives(directory)


def test_processes_that_start_it_at_the_same_instant_share_one(empty: Path) -> None:
    """The first start of all, database included, happens once however many ask for it (spec P-31)."""
    with ExitStack() as stack:
        users = [stack.enter_context(User(empty, wait=True)) for _ in range(4)]
        for user in users:
            user.begin()
        assert len({user.url for user in users}) == 1
        users[0].ask("CREATE TABLE seen AS SELECT 1 AS n")
        assert [user.ask("SELECT n FROM seen") for user in users] == [1, 1, 1, 1]
        for user in users:
            user.leave()
    assert not lives(empty)


@pytest.mark.parametrize("moment", ["door", "data.new/PG_VERSION", "data", "server.json", "data/postmaster.pid"])
def test_a_user_killed_while_it_starts_the_server_is_survived(empty: Path, moment: str) -> None:
    """Whatever a start had done when it was killed, the next use is served, and stops what it started (spec P-31)."""
    with User(empty) as killed:
        until((empty / moment).exists)
        killed.kill()
    with EmbeddedServer.use(empty) as server, connect(server.url) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("testigo",)
        assert not (empty / "data.new").exists()
    assert not lives(empty)


def test_threads_of_a_process_are_one_user(directory: Path) -> None:
    """Threads share the process's place; the server stops when the last of them has closed (spec P-31)."""
    barrier = threading.Barrier(8)

    def use(_: int) -> EmbeddedServer:
        barrier.wait()
        return EmbeddedServer.use(directory)

    with ThreadPoolExecutor(8) as threads:
        servers = list(threads.map(use, range(8)))
        assert len({server.url for server in servers}) == 1
        list(threads.map(EmbeddedServer.close, servers[1:]))
        with connect(servers[0].url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        servers[1].close()
        assert lives(directory)
        servers[0].close()
    assert not lives(directory)


def test_an_interpreter_that_exits_has_left(directory: Path) -> None:
    """Who forgets to close the server leaves when the interpreter exits (spec P-31)."""
    with User(directory) as user:
        user.exit()
    assert not lives(directory)


def test_a_forked_child_is_no_user(directory: Path) -> None:
    """A child's close does nothing, and a living child does not count when its parent is killed (spec P-31)."""
    with User(directory) as parent, User(directory) as other:
        child = parent.fork()
        try:
            assert parent.ask("SELECT 1") == 1
            parent.kill()
            assert other.ask("SELECT 1") == 1
            other.leave()
            assert not lives(directory)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_may_use_the_server_in_its_own_right(directory: Path) -> None:
    """A child that calls `use` is a user of its own: its parent's going leaves it the server (spec P-31)."""
    with User(directory) as parent:
        child = parent.fork(a_user=True)
        try:
            parent.leave()
            assert lives(directory)
        finally:
            os.kill(child, signal.SIGUSR1)
    until(lambda: not lives(directory))


def test_ctrl_c_ends_its_users_and_not_the_server(directory: Path) -> None:
    """The postmaster leads a session of its own, so a SIGINT to a user's group does not reach it (spec P-31)."""
    with User(directory) as other, User(directory) as interrupted:
        assert interrupted.url
        assert other.ask("SELECT 1") == 1
        server = postmaster(directory)
        assert os.getsid(server) == server
        interrupted.interrupt_group()
        assert other.ask("SELECT 1") == 1
        assert postmaster(directory) == server


@pytest.mark.needs_linux
def test_the_server_holds_none_of_its_users_files(directory: Path) -> None:
    """The server inherits its lock and its log and nothing else, and leaving returns what using took (spec P-31)."""
    before = _descriptors(os.getpid())
    with EmbeddedServer.use(directory):
        inherited = {name for name in _descriptors(postmaster(directory)).values() if name.startswith("/")}
        assert inherited == {"/dev/null", *(str(directory.resolve() / name) for name in ("alive", "server.log"))}
    assert _descriptors(os.getpid()) == before


def _descriptors(pid: int) -> dict[str, str]:
    found = {}
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[link.name] = str(link.readlink())
        except FileNotFoundError:
            continue
    return found
