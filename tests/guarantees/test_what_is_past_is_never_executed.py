"""Promise 4, when receipts are gone: a command that is older than they are is refused, and never executed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from testigo.authority.actions import Action, SessionAction
from testigo.errors import ReceiptExpired
from tests.scenes import SCENES, Call, told
from tests.stage import Stage
from tests.world import World

WORKERS = sorted(name for name, scene in SCENES.items() if scene.keeps_a_receipt and scene.is_a_workers)
OTHERS = sorted(name for name, scene in SCENES.items() if scene.keeps_a_receipt and not scene.is_a_workers)

FIRST_SEND = pytest.mark.parametrize("was_sent", [False, True], ids=["never-sent", "sent-before"])


@pytest.fixture
def world(stage: Stage) -> World:
    """A world that is empty, in a database of which every row can be seen."""
    stage.clear()
    return World(stage.db)


@FIRST_SEND
@pytest.mark.parametrize("name", WORKERS)
def test_a_workers_command_below_its_low_water_mark_is_refused(
    stage: Stage, world: World, name: str, was_sent: bool
) -> None:
    """Its n is past, and nobody knows any more whether it was executed: it is not executed now (spec P-04)."""
    call = SCENES[name].prepare(world)
    n = turn(call).n
    if was_sent:
        call.send(world.db.run)
        world.query("DELETE FROM testigo.session_receipt WHERE n <= :n", n=n)
    set_low_water(world, call, n + 1)
    is_refused_and_changes_nothing(stage, call)


@pytest.mark.parametrize("name", WORKERS)
def test_a_workers_command_whose_receipt_is_still_there_is_answered(world: World, name: str) -> None:
    """Receipts below the mark go when a sweep comes; until then they tell the truth (spec B-04, P-04)."""
    call = SCENES[name].prepare(world)
    first = call.send(world.db.run)
    set_low_water(world, call, turn(call).n + 1)
    assert told(call.send(world.db.run)) == told(first)


@pytest.mark.parametrize("name", WORKERS)
def test_a_workers_command_at_its_low_water_mark_is_executed(world: World, name: str) -> None:
    """The mark is the first n whose receipt may still be asked for (spec P-04)."""
    call = SCENES[name].prepare(world)
    set_low_water(world, call, turn(call).n)
    first = call.send(world.db.run)
    assert told(call.send(world.db.run)) == told(first)


@FIRST_SEND
@pytest.mark.parametrize("name", OTHERS)
def test_an_action_at_the_floor_is_refused(stage: Stage, world: World, name: str, was_sent: bool) -> None:
    """Its receipt may have been pruned: the floor says so, and no clock; whatever else there is to say of it
    (spec P-04)."""
    call = SCENES[name].prepare(world)
    action = made(call)
    if was_sent:
        call.send(world.db.run)
        world.query("DELETE FROM testigo.receipt WHERE created_at <= :at", at=action.created_at)
    world.query("UPDATE testigo.installation SET receipt_floor = :at", at=action.created_at)
    is_refused_and_changes_nothing(stage, call)


@pytest.mark.parametrize("name", OTHERS)
def test_an_action_just_above_the_floor_is_executed(world: World, name: str) -> None:
    """The floor is the newest time that was pruned: what was made after it is there, or was never sent (spec P-04)."""
    call = SCENES[name].prepare(world)
    floor = made(call).created_at - timedelta(microseconds=1)
    world.query("DELETE FROM testigo.receipt WHERE created_at <= :at", at=floor)
    world.query("UPDATE testigo.installation SET receipt_floor = :at", at=floor)
    first = call.send(world.db.run)
    assert told(call.send(world.db.run)) == told(first)


def is_refused_and_changes_nothing(stage: Stage, call: Call) -> None:
    """Send it twice, and see that it is refused and not executed."""
    before = stage.rows()
    for _ in range(2):
        with pytest.raises(ReceiptExpired):
            call.send(stage.db.run)
    assert stage.rows() == before


def set_low_water(world: World, call: Call, mark: int) -> None:
    """Let the session of this call ask for no receipt below the mark any more."""
    session = turn(call).session_id
    world.query("UPDATE testigo.session SET low_water = :mark WHERE id = CAST(:id AS uuid)", mark=mark, id=session)


def turn(call: Call) -> SessionAction:
    """The turn of its session that the call is."""
    action = call.options["action"]
    assert isinstance(action, SessionAction)
    return action


def made(call: Call) -> Action:
    """The action that the call is."""
    action = call.options["action"]
    assert isinstance(action, Action)
    return action
