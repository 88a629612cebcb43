"""What a session says of its processes, and what becomes of its connections when it is over."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from testigo.authority.actions import SessionId, new_id
from testigo.authority.expire import expire
from testigo.authority.processes import HostSession, holding, record_processes, sessions_on, terminate_backends
from testigo.authority.sessions import NewSession, Session, close_session, open_session
from testigo.errors import Invalid, SessionReplaced
from testigo.store.backend import Backend
from testigo.store.database import Database
from testigo.store.urls import server_url
from tests.world import World


def opened(world: World, agent: str, host: str) -> Session:
    """A session of this agent on this host."""
    new = NewSession(agent, ("q",), ("work",), host=host, processes={"keeper": {"pid": 1, "started": "7"}})
    return world.db.run(open_session, new, action=world.action())


def backend_of(connection: psycopg.Connection[Any]) -> Backend:
    """The server's process behind a connection."""
    row = connection.execute("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()").fetchone()
    assert row is not None
    return Backend(*row)


def told(*backends: Backend) -> dict[str, Any]:
    """Processes as a keeper records them."""
    return {"backends": [{"pid": each.pid, "started": each.started.isoformat()} for each in backends]}


def test_who_shares_a_host_sees_the_live_sessions_there_and_their_processes(world: World) -> None:
    """As they were told last; not those of other hosts, and not those that are over (spec P-20)."""
    ann, bob, cat = opened(world, "ann", "here"), opened(world, "bob", "here"), opened(world, "cat", "there")
    world.db.run(record_processes, ann.id, {"runners": [{"pid": 2, "started": "8"}]})
    world.db.run(close_session, bob.id)
    assert world.db.run(sessions_on, "here") == (HostSession(ann.id, "ann", {"runners": [{"pid": 2, "started": "8"}]}),)
    assert world.db.run(sessions_on, "there")[0].id == cat.id
    assert world.db.run(sessions_on, "nowhere") == ()


def test_a_session_that_is_over_tells_of_no_processes(world: World) -> None:
    """Whoever would give a new runner work learns that it has none (spec P-20)."""
    ann = opened(world, "ann", "here")
    world.db.run(close_session, ann.id)
    with pytest.raises(SessionReplaced):
        world.db.run(record_processes, ann.id, {})
    with pytest.raises(SessionReplaced):
        world.db.run(record_processes, SessionId(new_id()), {})


@pytest.mark.parametrize("processes", [None, [1], {"keeper": float("nan")}, {"big": "x" * 300_000}])
def test_what_are_no_processes_is_refused(world: World, processes: Any) -> None:
    """They are JSON of a bounded size (field case R45)."""
    ann = opened(world, "ann", "here")
    with pytest.raises(Invalid) as refused:
        world.db.run(record_processes, ann.id, processes)
    assert str(refused.value.field).startswith("session.processes")


def test_only_who_is_over_and_holds_leases_is_named(world: World) -> None:
    """A sweep has not come, or it was blocked (spec P-10, P-18)."""
    world.submit()
    worker, idle = world.worker(), world.worker()
    worker.take()
    assert world.db.run(holding) == frozenset()
    for session in (worker.id, idle.id):
        world.db.run(close_session, session)
    assert world.db.run(holding) == {worker.id}
    world.db.run(expire)
    assert world.db.run(holding) == frozenset()


def test_the_connections_of_a_session_that_is_over_are_ended_and_no_others(world: World, database_url: str) -> None:
    """A pid alone is not enough: it may be somebody else's by now (spec P-10)."""
    session = opened(world, "ann", "here")
    with psycopg.connect(database_url) as own, psycopg.connect(database_url) as other:
        mine, others = backend_of(own), backend_of(other)
        world.db.run(record_processes, session.id, told(mine, Backend(others.pid, mine.started)))
        assert world.db.run(terminate_backends, session.id) == 0
        world.db.run(close_session, session.id)
        again = opened(world, "ann", "here")
        world.db.run(record_processes, again.id, told(mine))
        assert world.db.run(terminate_backends, session.id) == 0
        world.db.run(close_session, again.id)
        assert world.db.run(terminate_backends, session.id) == 1
        with pytest.raises(psycopg.OperationalError):
            own.execute("SELECT 1")
        other.execute("SELECT 1")


def test_a_database_knows_the_servers_processes_behind_its_connections(database_url: str) -> None:
    """As connections are opened and closed, so that a keeper can tell of them (spec P-10)."""
    with Database(database_url, pool_size=2) as db:
        assert db.backends() == ()
        db.run(lambda c: c.exec_driver_sql("SELECT 1"))
        (mine,) = db.backends()
        with psycopg.connect(server_url(database_url).set(drivername="postgresql").render_as_string(False)) as other:
            row = other.execute("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = %s", [mine.pid]).fetchone()
            assert row == mine
            other.execute("SELECT pg_terminate_backend(%s, 30000)", [mine.pid])
        db.run(lambda c: c.exec_driver_sql("SELECT 1"))
        (again,) = db.backends()
        assert again != mine
    assert db.backends() == ()
