"""A database that goes away: said clearly, with when to come back, and over by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest
from psycopg import sql

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.authority.read import paused
from testigo.errors import Busy
from testigo.settings import Web
from testigo.store.sql import Statement
from testigo.web.door import Door
from tests.store.roles import as_role, ordinary_role
from tests.web.conftest import PATIENT, Site, served
from tests.wire import wire
from tests.worker.kit import await_that
from tests.world import World

IMPATIENT = Web(read_seconds=0.5, act_seconds=0.5)
FOR_EVER = 1_000_000


@contextmanager
def impatient(site: Site) -> Iterator[None]:
    """Meanwhile the site soon gives up: it is waited for, where what is well may take its time."""
    door: Door = site.app.state.door
    door._settings = IMPATIENT
    yield
    door._settings = PATIENT


def is_unavailable(answer: httpx.Response) -> bool:
    """Whether an answer says that it will be better later, and when."""
    assert answer.status_code == 503, answer.text
    return int(answer.headers["retry-after"]) > 0


def test_every_door_says_so_and_recovers_by_itself(database_url: str, world: World) -> None:
    """Pages in words, programs by a code, both with Retry-After; afterwards nothing needs a hand."""
    with wire(database_url) as (laid, url), served(url, world) as site:
        operator, program, anybody = site.as_(Role.OPERATOR), site.program(Role.OPERATOR), site.anybody()
        assert operator.get("/horizon/jobs").status_code == program.get("/api/v1/jobs").status_code == 200
        form = {"name": "q", "reason": "", "action_id": new_id()}
        laid.refuse(FOR_EVER)
        with impatient(site):
            page = operator.get("/horizon/jobs")
            assert is_unavailable(page)
            assert "The database did not answer" in page.text
            assert page.headers["content-type"].startswith("text/html")
            told = program.get("/api/v1/jobs")
            assert is_unavailable(told)
            assert told.json()["code"] == "AUTHORITY_UNAVAILABLE"
            assert is_unavailable(operator.post("/horizon/queues/pause", data=form))
            login = {"name": "admin", "password": "password"}
            assert is_unavailable(anybody.post("/horizon/login", data=login, headers={"Origin": site.url}))
            assert is_unavailable(program.get("/api/v1/health/ready"))
            assert anybody.get("/api/v1/health/live").status_code == 200
            assert anybody.get("/horizon/login").status_code == 200

        laid.refuse(0)
        await_that(lambda: operator.get("/horizon/jobs").status_code == 200, "the recovery of the panel")
        assert program.get("/api/v1/jobs").status_code == 200
        assert not world.db.run(paused).items
        assert operator.post("/horizon/queues/pause", data=form).status_code == 303
        await_that(lambda: program.get("/api/v1/health/ready").status_code == 200, "its readiness")


def test_a_connection_that_is_cut_costs_nobody_an_error(database_url: str, world: World) -> None:
    """The command is sent again, on another connection."""
    with wire(database_url) as (laid, url), served(url, world) as site:
        operator = site.as_(Role.OPERATOR)
        for _ in range(3):
            assert operator.get("/horizon/jobs").status_code == 200
            laid.cut()


def test_a_server_starts_without_its_database(database_url: str, world: World) -> None:
    """And serves when that has come."""
    with wire(database_url) as (laid, url):
        laid.refuse(FOR_EVER)
        with served(url, world) as site:
            viewer = site.as_(Role.VIEWER)
            with impatient(site):
                assert is_unavailable(viewer.get("/horizon"))
            laid.refuse(0)
            await_that(lambda: viewer.get("/horizon").status_code == 200, "the recovery of the panel")


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_stated(database_url: str, world: World) -> None:
    """A wire that swallows what is said ends no request by itself."""
    with wire(database_url) as (laid, url), served(url, world) as site:
        viewer = site.as_(Role.VIEWER)
        assert viewer.get("/horizon/jobs").status_code == 200
        laid.fall_silent()
        with impatient(site):
            answers = [viewer.get("/horizon/jobs") for _ in range(2)]
            assert any(answer.status_code == 503 for answer in answers)
            await_that(lambda: viewer.get("/horizon/jobs").status_code == 200, "the recovery of the panel")


@pytest.mark.parametrize("right", ["SELECT", "ALL"])
def test_where_only_reading_is_allowed_nobody_is_let_in_and_it_is_said(
    database_url: str, world: World, right: str
) -> None:
    """To log in is to write: whoever runs the installation is told what to grant, and nobody sees a failure."""
    with ordinary_role(database_url) as role, psycopg.connect(database_url, autocommit=True) as administrator:
        names = {"schema": sql.Identifier(world.db.schema), "role": sql.Identifier(role), "right": sql.SQL(right)}
        administrator.execute(sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}").format(**names))
        administrator.execute(sql.SQL("GRANT {right} ON ALL TABLES IN SCHEMA {schema} TO {role}").format(**names))
        if right == "ALL":  # as on a standby
            administrator.execute(sql.SQL("ALTER ROLE {role} SET default_transaction_read_only TO on").format(**names))
        with served(as_role(database_url, role), world) as site:
            for data in ({"name": "admin", "password": "password"}, {"link": "a link"}):
                page = site.anybody().post("/horizon/login", data=data, headers={"Origin": site.url})
                assert is_unavailable(page)
                assert "nothing be written" in page.text
                assert "Grant the role" in page.text
                browser = site.client({"Origin": site.url, "Accept-Language": "es"})
                assert "no se puede dejar entrar a nadie" in browser.post("/horizon/login", data=data).text
            told = site.program(Role.VIEWER).get("/api/v1/jobs")
            assert is_unavailable(told)
            assert told.json()["remedy"].startswith("Grant the role")
        administrator.execute(sql.SQL("DROP OWNED BY {role}").format(**names))


def test_a_reading_that_takes_too_long_is_given_up_by_the_database(site: Site) -> None:
    """And told as that: it is for the caller to ask for less."""
    door: Door = site.app.state.door
    door._settings = IMPATIENT

    def sleep(c: object) -> object:
        return Statement("SELECT pg_sleep(600)").rows(c)  # type: ignore[arg-type]

    original = door.read
    site.app.state.door.read = lambda *_, **__: original(sleep)
    answer = site.program(Role.VIEWER).get("/api/v1/jobs")
    assert is_unavailable(answer)
    assert answer.json()["code"] == Busy.code
    assert "0.5 seconds" in answer.json()["detail"]
    running = (
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid() AND state = 'active'"
    )
    await_that(lambda: not site.world.query(running), "the end of the statement")


@pytest.mark.parametrize("role", list(Role))
def test_whoever_may_read_may_ask_for_health_and_metrics(site: Site, role: Role) -> None:
    """In Prometheus' format; without credentials neither is told."""
    site.world.submit(queue="media")
    program = site.program(role)
    assert program.get("/api/v1/health/ready").json() == {
        "status": "ready",
        "checks": [{"name": "database", "ok": True, "reason": ""}, {"name": "signals", "ok": True, "reason": ""}],
    }
    told = program.get("/api/v1/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=")
    assert 'testigo_jobs{state="ready"} 1.0' in told.text
    assert 'testigo_queue_jobs{part="ready",queue="media"} 1.0' in told.text
    assert 'testigo_http_answers_total{door="api",status="200"}' in told.text
    assert "testigo_streams_open 0.0" in told.text
