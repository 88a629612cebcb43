"""Open streams are told of what changes, for one query a second in all (panel.md *Live updates*)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from testigo.access.logins import end_logins
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.tokens import revoke_token
from testigo.access.users import disable_user, set_role
from testigo.authority.pause import Scope, pause
from testigo.evidence.review import decide
from testigo.journal.events import Event
from testigo.rules.evidence.review import Decision
from testigo.web.signals.recent import Recent
from tests.evidence.store.kit import found, going, listed, published
from tests.web.conftest import PATIENT, Site, served
from tests.web.listening import listened
from tests.wire import wire
from tests.worker.kit import await_that
from tests.world import World

SIGNALS = "/horizon/signals"
STREAMS = 200


@pytest.fixture
def quick(database_url: str, world: World) -> Iterator[Site]:
    """A site that looks often, so that a test need not wait."""
    with served(database_url, world, replace(PATIENT, signal_seconds=0.02, ping_seconds=0.2)) as site:
        yield site


@contextmanager
def counted(site: Site) -> Iterator[list[str]]:
    """The statements that the server sends meanwhile; its chores in the background are put to rest."""
    for task in site.app.state.background._tasks:
        task.get_loop().call_soon_threadsafe(task.cancel)
    await_that(lambda: all(task.done() for task in site.app.state.background._tasks), "the end of the chores")
    engine = site.app.state.hub._database._engine.sync_engine
    sent: list[str] = []

    def count(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", count)
    yield sent
    event.remove(engine, "before_cursor_execute", count)


def test_two_hundred_streams_cost_one_query_a_second(site: Site) -> None:
    """Of signals and of events, half each; all of them hear of the next job."""
    site.world.submit(queue="q")
    program = site.program(Role.VIEWER)
    paths = [f"{SIGNALS}?topics=jobs&topics=queue:q", "/api/v1/events/live?stream=q"] * (STREAMS // 2)
    headers = dict(program.headers)

    async def listen(client: httpx.AsyncClient, path: str, opened: asyncio.Queue[None], go: asyncio.Event) -> str:
        async with client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            lines = response.aiter_lines()
            await anext(lines)
            if path.startswith(SIGNALS):  # the first signal tells how everything stands
                while not (await anext(lines)).startswith("data:"):
                    pass
            opened.put_nowait(None)
            await go.wait()
            while True:
                if (line := await anext(lines)).startswith("data:"):
                    return line
        raise AssertionError(path)

    async def all_listen() -> tuple[list[str], int, float]:
        limits = httpx.Limits(max_connections=STREAMS + 10)
        async with httpx.AsyncClient(base_url=site.url, limits=limits, timeout=60.0) as client:
            opened: asyncio.Queue[None] = asyncio.Queue()
            go = asyncio.Event()
            tasks = [asyncio.create_task(listen(client, path, opened, go)) for path in paths]
            for _ in tasks:
                await asyncio.wait_for(opened.get(), 60)
            assert site.app.state.hub.streams == STREAMS
            with counted(site) as sent:
                began = time.monotonic()
                await asyncio.sleep(3 * site.app.state.settings.signal_seconds)
                await asyncio.to_thread(site.world.submit, queue="q")
                go.set()
                lines = await asyncio.gather(*tasks)
                return lines, len(sent), time.monotonic() - began

    lines, queries, seconds = asyncio.run(all_listen())
    assert len(lines) == STREAMS
    assert all('"queue:q": "2"' in line for line in lines[::2])
    assert all("job.requested" in line for line in lines[1::2])
    assert 0 < queries <= seconds / site.app.state.settings.signal_seconds + 1


def test_a_topic_tells_of_its_own_and_of_nothing_else(quick: Site) -> None:
    """A job of another queue wakes whoever asked for all jobs, and not who asked for this queue or that job."""
    (job,) = quick.world.submit(queue="q")
    plain = ["jobs", "pauses", "audit", "operations", "workers", "beats"]
    asked = {"topics": [*plain, "queue:q", "queue:other", f"job:{job}"]}
    with listened(quick.as_(Role.VIEWER), SIGNALS, params=asked) as stream:
        assert set(stream.event().json) == set(asked["topics"])
        quick.world.submit(queue="other")
        assert set(stream.event().json) == {"jobs", "queue:other"}
        quick.db.run(pause, Scope.QUEUE, "paused", note="", action=quick.world.action())
        assert set(stream.event().json) == {"pauses"}
        quick.world.worker().take()
        seen: set[str] = set()
        while f"job:{job}" not in seen:
            seen |= set(stream.event().json)
        assert "queue:other" not in seen


def test_whoever_looks_at_evidence_is_told_of_decisions(quick: Site) -> None:
    """Which are no events of jobs: a viewer, who may not see the audit, hears of them as well."""
    first, second = published(quick.world, found("a")), published(quick.world, found("b"))
    (view,) = listed(quick.world, first).values()
    asked = {"topics": ["analyses", f"analysis:{first}", f"analysis:{second}"]}
    with listened(quick.as_(Role.VIEWER), SIGNALS, params=asked) as stream:
        assert set(stream.event().json) == set(asked["topics"])
        decision = Decision.FALSE_POSITIVE
        quick.db.run(decide, view.id, decision, expected_revision=1, reason="seen", action=quick.world.action())
        assert set(stream.event().json) == {"analyses", f"analysis:{first}"}
        going(quick.world)
        assert set(stream.event().json) == {"analyses"}


def test_whoever_comes_back_is_told_once_what_they_missed(quick: Site) -> None:
    """By the id of the last signal that they had; of nothing, if they missed nothing."""
    viewer, asked = quick.as_(Role.VIEWER), {"topics": ["jobs", "queue:q", "pauses"]}
    (job,) = quick.world.submit(queue="q")
    await_that(lambda: quick.world.events(job) != [], "its admission by the server")
    with listened(viewer, SIGNALS, params=asked) as stream:
        last = stream.event().id
        while (told := stream.next()) is not None and not told.comment:
            last = told.id or last
    back, comments = {"Last-Event-ID": last}, list[str]()
    for _ in range(3):  # what the server did with the job may be told a moment later, and then once
        with listened(viewer, SIGNALS, params=asked, headers=back) as stream:
            assert stream.next() is not None
            told = stream.next()
            assert told is not None
        comments.append(told.comment)
        back = {"Last-Event-ID": told.id or back["Last-Event-ID"]}
    assert comments[-1] == "ping"
    quick.world.submit(queue="other")
    with listened(viewer, SIGNALS, params=asked, headers=back) as stream:
        assert set(stream.event().json) == {"jobs"}


@pytest.mark.parametrize("last", ["", "x", "1", "1,2,3,4", "é", "\x00", "," * 1_999])
def test_an_id_of_another_stream_counts_as_none(quick: Site, last: str) -> None:
    """Whoever comes with it is told every topic, and too often rather than too seldom."""
    viewer, asked = quick.as_(Role.VIEWER), {"topics": ["jobs", "pauses"]}
    headers = {"Last-Event-ID": last.encode()} if "\x00" not in last else {}
    with listened(viewer, SIGNALS, params=asked, headers=headers) as stream:
        assert set(stream.event().json) == {"jobs", "pauses"}


@pytest.mark.parametrize(
    "topics",
    [
        [],
        ["nothing"],
        ["queue:"],
        ["job:x"],
        ["job:' OR 1=1"],
        ["analysis:x"],
        ["jobs:"],
        [f"queue:q{n}" for n in range(21)],
    ],
)
def test_what_is_no_topic_is_refused(site: Site, topics: list[str]) -> None:
    """In words, and not by a stream that never tells anything."""
    answer = site.as_(Role.VIEWER).get(SIGNALS, params={"topics": topics})
    assert answer.status_code == 422


def test_a_stream_that_has_nothing_to_tell_says_that_it_lives(quick: Site) -> None:
    """By comments."""
    with listened(quick.as_(Role.VIEWER), SIGNALS, params={"topics": ["pauses"]}) as stream:
        stream.event()
        told = [stream.next() for _ in range(3)]
    assert [each.comment for each in told if each] == ["ping"] * 3


@pytest.mark.parametrize("ending", ["logged out", "disabled", "another role"])
def test_a_stream_ends_with_its_login(quick: Site, ending: str) -> None:
    """It is not for the browser to say when."""
    world = quick.world
    with listened(quick.as_(Role.VIEWER), SIGNALS, params={"topics": ["jobs"]}) as stream:
        stream.event()
        match ending:
            case "logged out":
                quick.db.run(end_logins, "viewer")
            case "disabled":
                quick.db.run(disable_user, "viewer", action=world.action())
            case _:
                quick.db.run(set_role, "viewer", Role.OPERATOR, action=world.action())
        assert stream.ends()


def test_a_stream_ends_with_its_token(quick: Site) -> None:
    """When it is revoked."""
    program = quick.program(Role.VIEWER)
    (name,) = [row.name for row in quick.world.query("SELECT name FROM testigo.token")]
    quick.world.submit()
    with listened(program, "/api/v1/events/live", params={"stream": "q", "after": "0"}) as stream:
        assert stream.event().event == "job.requested"
        quick.db.run(revoke_token, name, action=quick.world.action())
        assert stream.ends()


def test_every_event_comes_once_and_in_order(quick: Site) -> None:
    """To one who begins at the beginning, to one who comes back, and to one who follows from now on."""
    quick.world.submit()
    program, asked = quick.program(Role.VIEWER), {"stream": "q"}
    with (
        listened(program, "/api/v1/events/live", params={**asked, "after": "0"}) as first,
        listened(program, "/api/v1/events/live", params=asked) as new,
    ):
        new.next()
        for _ in range(20):
            quick.world.submit()
        heard = [first.event().id for _ in range(21)]
        assert heard == [str(n) for n in range(1, 22)]
        assert [new.event().id for _ in range(20)] == heard[1:]
    with listened(program, "/api/v1/events/live", params=asked, headers={"Last-Event-ID": "15"}) as back:
        assert [back.event().id for _ in range(6)] == heard[15:]


def test_too_many_streams_are_refused(database_url: str, world: World) -> None:
    """And one caller has half of them at most."""
    with served(database_url, world, replace(PATIENT, streams_max=4)) as site:
        hasty, calm = site.program(Role.VIEWER), site.program(Role.VIEWER)
        asked = {"topics": "jobs"}
        with listened(hasty, SIGNALS, params=asked), listened(hasty, SIGNALS, params=asked):
            answer = hasty.get(SIGNALS, params=asked)
            assert answer.status_code == 429
            with listened(calm, SIGNALS, params=asked):
                assert site.app.state.hub.streams == 3


def test_a_stream_tells_when_its_database_is_away_and_back(database_url: str, world: World) -> None:
    """It stays open, and goes on with what happened meanwhile."""
    settings = replace(PATIENT, signal_seconds=0.02)
    with (
        wire(database_url) as (laid, url),
        served(url, world, settings) as site,
        listened(site.as_(Role.VIEWER), SIGNALS, params={"topics": ["jobs"]}) as stream,
    ):
        assert stream.event().event == "changed"
        laid.refuse(1_000_000)
        assert stream.event().event == "stale"
        world.submit()
        laid.refuse(0)
        assert {stream.event().event, stream.event().event} == {"live", "changed"}


def test_a_beat_is_as_old_as_it_was_watched(quick: Site) -> None:
    """A session that does not beat grows old; one that is gone has no age."""
    worker = quick.world.worker()
    hub = quick.app.state.hub
    await_that(lambda: hub.beat_age_seconds(worker.id) is not None, "a look at the session")
    first = hub.beat_age_seconds(worker.id)
    await_that(lambda: hub.beat_age_seconds(worker.id) > first, "its ageing")
    assert hub.beat_age_seconds(Secret.new().text) is None


def event_at(sequence: int) -> Event:
    """Some event of that place."""
    return Event("i", "t", "s", None, "q", sequence, 1, "a", "b", {})  # type: ignore[arg-type]


def test_what_is_kept_of_a_stream_has_no_gap() -> None:
    """Whoever is behind what is kept reads alone, and whoever is ahead of it waits."""
    recent = Recent()
    assert recent.after(0) is None
    recent.begin(10)
    recent.begin(99)
    assert recent.after(10) == []
    assert recent.after(12) == []
    assert recent.after(9) is None
    recent.append([event_at(n) for n in (11, 12)])
    assert [each.sequence for each in recent.after(10) or ()] == [11, 12]
    assert [each.sequence for each in recent.after(11) or ()] == [12]
    recent.append([event_at(20)])
    assert recent.after(12) is None
    assert [each.sequence for each in recent.after(19) or ()] == [20]
    recent.append([event_at(n) for n in range(21, 3_021)])
    assert recent.head == 3_020
    assert recent.after(20) is None
    assert len(recent.after(1_020) or ()) == 2_000
