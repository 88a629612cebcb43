"""What workers and sweeps send is refused by field before it reaches the database, as is what callers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testigo.authority.actions import SessionAction, new_id
from testigo.authority.admit import admit
from testigo.authority.expire import declare_dead, expire, take_back
from testigo.authority.promote import promote
from testigo.authority.renew import renew
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.sessions import NewSession, close_session, drain_session, open_session
from testigo.authority.start import Held, start
from testigo.errors import Invalid
from testigo.journal.streams import streams
from tests.world import World

Send = Callable[[World], object]

SESSIONS: dict[str, Any] = {
    "id": "seven",
    "kinds": "work",
    "queues": None,
    "host": "a\0",
    "exclusive": 1,
    "replace": None,
    "processes": "pid",
    "term_seconds": True,
}

ACTIONS: dict[str, Any] = {"session_id": "seven", "agent": "a\0", "n": 0, "ordinal": -1}

HELD: dict[str, Any] = {"job_id": "seven", "lease_id": None, "epoch": 2**40}

COMMANDS: list[Send] = [
    lambda w: w.db.run(drain_session, _any("seven")),
    lambda w: w.db.run(close_session, _any(new_id().upper())),
    lambda w: w.db.run(reprocess, _any(new_id()), new_job_id=_any("seven"), action=w.action()),
    lambda w: w.db.run(renew, _any("seven"), [], epoch=1, beat=1, low_water=0),
    lambda w: w.db.run(renew, _any(new_id()), [], epoch=2**40, beat=1, low_water=0),
    lambda w: w.db.run(renew, _any(new_id()), [], epoch=1, beat=0, low_water=0),
    lambda w: w.db.run(renew, _any(new_id()), [], epoch=1, beat=1, low_water=-1),
    lambda w: w.db.run(declare_dead, "seven", epoch=1, beat=1),
    lambda w: w.db.run(declare_dead, new_id(), epoch=1, beat=2**63),
    lambda w: w.db.run(take_back, _any(new_id()), watermark=_any("1"), listed=()),
    lambda w: w.db.run(take_back, _any(new_id()), watermark=1, listed=_any(("seven",))),
    lambda w: w.db.run(expire, limit=-1),
    lambda w: w.db.run(admit, limit=0),
    lambda w: w.db.run(promote, "q", limit=2**64),
    lambda w: w.db.run(promote, "a\0"),
    lambda w: w.db.run(retire, _any(["seven"])),
    lambda w: w.db.run(retire_lapsed, limit=True),
    lambda w: w.db.run(streams, after=_any(0)),
]


@pytest.mark.parametrize("field", SESSIONS)
def test_a_session_is_refused_by_the_field_that_is_wrong(world: World, field: str) -> None:
    """One text is not several names, and what passes for a truth is none (B-02)."""
    new = NewSession(**{"agent": "a", "queues": ("q",), "kinds": ("k",), field: SESSIONS[field]})
    refused = _refusal(lambda: world.db.run(open_session, new, action=world.action()))
    assert refused.field == f"session.{field}"
    assert world.query("SELECT count(*) AS rows FROM testigo.session")[0].rows == 0


@pytest.mark.parametrize("field", ACTIONS)
def test_a_command_of_a_session_has_a_number_that_can_be_kept(field: str) -> None:
    """Commands are counted from 1; a receipt that could not be filed is not begun (spec P-04)."""
    given: dict[str, Any] = {"session_id": new_id(), "agent": "a", "n": 1, field: ACTIONS[field]}
    assert _refusal(lambda: SessionAction(**given)).field == f"action.{field}"


@pytest.mark.parametrize("field", HELD)
@pytest.mark.parametrize("command", [start, renew])
def test_a_lease_that_cannot_be_one_is_refused_and_never_matched(world: World, command: Any, field: str) -> None:
    """No lease is named by None, by what is no id, or by an epoch that no job reaches (spec D-03)."""
    given: dict[str, Any] = {"job_id": new_id(), "lease_id": new_id(), "epoch": 1, field: HELD[field]}
    worker = world.worker()
    if command is start:
        refused = _refusal(lambda: world.db.run(start, [Held(**given)], action=worker.action()))
    else:
        beat = {"epoch": worker.session.epoch, "beat": 1, "low_water": 0}
        refused = _refusal(lambda: world.db.run(renew, worker.id, [Held(**given)], **beat))
    assert refused.field == f"leases[0].{field}"


@pytest.mark.parametrize("send", COMMANDS)
def test_every_command_of_the_system_refuses_by_field(world: World, send: Send) -> None:
    """No id, number or limit goes to the database to be refused in the driver's words (B-02)."""
    assert _refusal(lambda: send(world)).field is not None


def _refusal(send: Callable[[], object]) -> Invalid:
    with pytest.raises(Invalid) as refused:
        send()
    return refused.value


def _any(value: object) -> Any:
    """What no type checker would let pass."""
    return value
