"""`testigo queues|kinds|workers`: what waits where, who works, what is paused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.authority.sessions import close_session
from testigo.rules.outcomes import Fail
from tests.cli.conftest import Cli
from tests.world import World


def test_queues_are_listed_with_what_waits_in_them(cli: Cli, world: World) -> None:
    """By name, page by page."""
    world.submit(queue="a")
    world.submit(queue="b", run_at=datetime.now(UTC) + timedelta(hours=3))
    world.worker(queues=("b",))
    first = cli("queues", "list", "--limit", "1", "--json").json
    assert [(each["name"], each["ready"]) for each in first["queues"]] == [("a", {"n": 1, "more": False})]
    second = cli("queues", "list", "--after", first["next"], "--json").json
    assert [(each["name"], each["delayed"]["n"], each["sessions"]["n"]) for each in second["queues"]] == [("b", 1, 1)]
    head, a, b = cli("queues", "list").out.splitlines()
    assert head.split() == ["QUEUE", "READY", "LEASED", "DELAYED", "NEXT", "DUE", "WORKERS", "PAUSED", "BY", "WHY"]
    assert (a.split(), b.split()) == (["a", "1", "0", "0", "0"], ["b", "0", "0", "1", "in", "2h", "1"])


def test_a_queue_is_shown_with_who_serves_it(cli: Cli, world: World) -> None:
    """However many queues come before it."""
    world.submit(queue="media")
    world.worker("media-1", queues=("media",))
    cli("queues", "pause", "media", "--note", "disk")
    shown = cli("queues", "show", "media").out
    assert "workers  media-1" in shown
    assert "why      disk" in shown
    assert cli("queues", "show", "media", "--json").json["sessions"][0]["agent"] == "media-1"


def test_a_pause_holds_until_it_is_resumed(cli: Cli, world: World) -> None:
    """Of a queue and of a kind; doing it twice changes nothing, and is said."""
    world.submit()
    worker = world.worker()
    for noun, name in (("queues", "q"), ("kinds", "work")):
        scope = noun.removesuffix("s")
        assert cli(noun, "pause", name, "--note", "why").out == f"The {scope} {name} is paused.\n"
        assert cli(noun, "pause", name).out == f"The {scope} {name} was paused already: nothing changed.\n"
        assert not worker.claim().leases
        assert "paused" in cli(noun, "list").out
        assert cli(noun, "resume", name, "--json").json == {"scope": scope, "name": name, "changed": True}
        assert cli(noun, "resume", name).out == f"The {scope} {name} was not paused: nothing changed.\n"
    assert worker.claim().leases


def test_kinds_are_known_from_workers_pauses_and_jobs(cli: Cli, world: World) -> None:
    """With what waits, runs and failed among the newest jobs."""
    world.submit(), world.submit(), world.submit()
    worker = world.worker(kinds=("work", "rest"))
    lease, _ = worker.claim(2).leases
    worker.settle((lease, Fail("X", "", permanent=True)))
    cli("kinds", "pause", "held", "--note", "codec")
    kinds = {each["name"]: each for each in cli("kinds", "list", "--json").json["kinds"]}
    assert list(kinds) == ["held", "rest", "work"]
    counts = {name: kinds["work"][name] for name in ("waiting", "leased", "failed", "sessions")}
    assert counts == {"waiting": 1, "leased": 1, "failed": 1, "sessions": 1}
    assert (kinds["rest"]["sessions"], kinds["held"]["pause"]["note"]) == (1, "codec")
    assert [line.split()[0] for line in cli("kinds", "list").out.splitlines()] == ["KIND", "held", "rest", "work"]


def test_workers_that_live_are_listed(cli: Cli, world: World) -> None:
    """Those that drain as well; others by their state, page by page."""
    worker, drains, closed, also = (world.worker(name) for name in ("w1", "w2", "w3", "w4"))
    cli("workers", "drain", "w2", "--yes")
    for each in (closed, also):
        world.db.run(close_session, each.id)
    found = cli("workers", "list", "--json").json["workers"]
    assert [(each["id"], each["state"]) for each in found] == [(drains.id, "draining"), (worker.id, "open")]
    assert cli("workers", "list").out.splitlines()[1].split()[:2] == ["w2", "draining"]
    first = cli("workers", "list", "--state", "closed", "--limit", "1", "--json").json
    after = cli("workers", "list", "--state", "closed", "--after", first["next"], "--json").json
    assert [each["agent"] for each in first["workers"] + after["workers"]] == ["w4", "w3"]


def test_a_worker_is_drained_by_its_name_or_its_session(cli: Cli, world: World) -> None:
    """How much it holds is said before anything is done."""
    world.submit()
    worker = world.worker("w1")
    worker.take()
    ran = cli("workers", "drain", worker.id)
    assert (ran.status, ran.err) == (2, "USAGE: Drain w1, which holds 1 job? Nobody can be asked here: say --yes.\n")
    ran = cli("workers", "drain", worker.id, "--yes")
    assert ran.out == "w1 is asked to finish: it holds 1 job.\n"
    assert cli("workers", "list", "--state", "draining", "--json").json["workers"][0]["agent"] == "w1"


def test_nothing_is_said_to_be_nothing(cli: Cli) -> None:
    """On stderr, so that a pipe gets nothing."""
    for noun in ("queues", "kinds", "workers", "events"):
        ran = cli(noun, "list")
        assert (ran.status, ran.out) == (0, "")
        assert ran.err
