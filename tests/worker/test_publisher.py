"""The publisher: the engine's own code, with credentials that stand nowhere, held as a runner is (spec P-30)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from testigo.authority.processes import terminate_backends
from testigo.authority.sessions import close_session
from testigo.errors import InHandler, Invalid
from testigo.worker.context import Context
from testigo.worker.handlers import HandlerSpec
from testigo.worker.hello import hello_from
from testigo.worker.protocol import Run
from testigo.worker.publisher import publishing
from tests.scan.kit import Scene, scene
from tests.worker.kit import PATIENCE_SECONDS, await_that, children_of
from tests.world import World

_WAITING = """
    SELECT pid
    FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%testigo.analysis%FOR UPDATE%'
"""
HELLO = {"pid": 1, "app": "a", "url": None, "schema": None, "deployment": None}


def _handler(ctx: Context) -> None:
    """Does nothing."""


def test_no_application_adds_to_what_it_runs() -> None:
    """Neither by a handler nor by what its runner says (spec P-30)."""
    with pytest.raises(Invalid, match="engine's own kinds"):
        HandlerSpec("mine", "q", _handler, isolation="publisher")
    kinds = {"mine": {"queue": "q", "isolation": "publisher"}}
    assert hello_from(["hello", {**HELLO, "kinds": kinds}]) is None


def test_its_kinds_are_told_apart() -> None:
    """They are claimed for it alone."""
    hello = hello_from(["hello", {**HELLO, "kinds": {"testigo.publish": {"queue": "q", "isolation": "publisher"}}}])
    assert hello is not None
    assert hello.kinds == ({}, {}, {"testigo.publish": "q"})
    assert hello.queues == ("q",)


def test_nobody_else_publishes() -> None:
    """A run that is no publisher's has no database to publish with."""
    run = Run(1, "testigo.publish", "q", "job", 1, 0, 0, 60.0, None, "{}", None, None)
    with pytest.raises(InHandler):
        publishing(Context(run, None))  # type: ignore[arg-type]  # it is not asked


@pytest.mark.needs_linux
def test_its_credentials_stand_nowhere(world: World, database_url: str, tmp_path: Path) -> None:
    """Neither in its arguments nor in its environment, nor in those of a runner; and it is replaced when it dies."""
    with scene(world, database_url, tmp_path) as it:
        pid = it.publisher()
        assert pid is not None
        for child in children_of(it.worker.pid):
            told = b"".join(Path(f"/proc/{child}/{each}").read_bytes() for each in ("cmdline", "environ"))
            assert database_url.encode() not in told
            assert b"TESTIGO_KEYS" not in told
        os.kill(pid, signal.SIGKILL)
        await_that(lambda: _another(it, pid), "another publisher")
        it.worker.signal(signal.SIGTERM)
        assert it.worker.wait() == 0, it.worker.log


@pytest.mark.needs_linux
def test_it_connects_as_its_keeper_does(
    world: World, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what libpq's variables say of the server, which runners are not told."""
    monkeypatch.setenv("PGAPPNAME", "who connects here")
    with scene(world, database_url, tmp_path) as it, _held(it, database_url) as pid:
        (row,) = world.query("SELECT application_name AS name FROM pg_stat_activity WHERE pid = :pid", pid=pid)
    assert row.name == "who connects here"


@pytest.mark.needs_linux
def test_its_transaction_ends_with_its_session_though_it_hangs(world: World, database_url: str, tmp_path: Path) -> None:
    """It stands still in the middle of a publication, and so does its keeper: its session tells of its connection,
    so whoever takes the work back ends that, and with it what is locked (spec P-10)."""
    with scene(world, database_url, tmp_path) as it, _held(it, database_url) as pid:
        publisher = it.publisher()
        assert publisher is not None
        for each in (publisher, it.worker.pid):
            os.kill(each, signal.SIGSTOP)
        (session,) = world.query("SELECT CAST(id AS text) AS id FROM testigo.session")
        assert _is_recorded(world, pid)
        world.db.run(close_session, session.id)
        world.db.run(terminate_backends, session.id)
        await_that(lambda: not world.query("SELECT 1 FROM pg_stat_activity WHERE pid = :pid", pid=pid), "its end")


@pytest.mark.needs_linux
def test_it_dies_with_its_keeper(world: World, database_url: str, tmp_path: Path) -> None:
    """As runners do (spec P-20)."""
    with scene(world, database_url, tmp_path) as it:
        pid = it.publisher()
        it.worker.signal(signal.SIGKILL)
        await_that(lambda: not Path(f"/proc/{pid}").exists(), "the publisher's end")


@contextmanager
def _held(it: Scene, url: str) -> Iterator[int]:
    """The publisher is in the transaction in which it publishes, and waits for a lock; the pid of its backend."""
    it.gate.hold("page")
    it.begin()
    assert it.gate.reached.wait(PATIENCE_SECONDS)
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1 FROM testigo.analysis WHERE id = %s FOR UPDATE", [it.new.id])
        it.gate.open()
        seen: list[int] = []

        def is_seen() -> bool:
            seen.extend(row.pid for row in it.world.query(_WAITING))
            return bool(seen)

        await_that(is_seen, "a wait for the lock")
        yield seen[0]


def _is_recorded(world: World, pid: int) -> bool:
    recorded = "SELECT CAST(processes AS json) -> 'backends' AS told FROM testigo.session_profile"
    return pid in [each["pid"] for row in world.query(recorded) for each in row.told]


def _another(it: Scene, than: int) -> bool:
    return it.publisher() not in (None, than)
