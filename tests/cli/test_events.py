"""`testigo events`: what happened, in order and from where it was asked for."""

from __future__ import annotations

from tests.cli.conftest import Cli
from tests.world import World


def test_streams_are_listed_by_name(cli: Cli, world: World) -> None:
    """With where they begin and end, page by page."""
    world.submit(queue="a"), world.submit(queue="a"), world.submit(queue="b")
    world.prune_events("a", up_to=1)
    first = cli("events", "list", "--limit", "1", "--json").json
    assert [(each["name"], each["floor"], each["head"]) for each in first["streams"]] == [("a", 1, 2)]
    assert first["next"] == "a"
    assert cli("events", "list", "--after", "a").out.splitlines()[1].split()[:3] == ["b", "1", "1"]


def test_the_newest_events_are_listed_in_order(cli: Cli, world: World) -> None:
    """Or those after a sequence; in JSON as CloudEvents."""
    ids = [world.submit()[0] for _ in range(4)]
    told = cli("events", "list", "q", "--limit", "2", "--json").lines
    assert [(event["subject"], int(event["sequence"])) for event in told] == [(ids[2], 3), (ids[3], 4)]
    assert told[0]["specversion"] == "1.0"
    ran = cli("events", "list", "q", "--after", "1", "--limit", "2")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["2", "3"]
    assert ran.err == "More: --after 3\n"


def test_a_cursor_below_the_floor_is_refused(cli: Cli, world: World) -> None:
    """Not answered with a gap; without a cursor the list begins above it."""
    world.submit(), world.submit()
    world.prune_events("q", up_to=1)
    assert cli("events", "list", "q", "--after", "0", "--json").error["code"] == "CURSOR_TOO_OLD"
    assert len(cli("events", "list", "q").out.splitlines()) == 1
    assert cli("events", "list", "q", "--after", "x", "--json").error["code"] == "CURSOR_INVALID"
