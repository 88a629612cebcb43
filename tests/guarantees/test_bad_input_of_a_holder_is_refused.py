"""What workers and sweeps send is refused by field before it reaches the database, as is what callers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testigo.authority.actions import SessionAction, new_id
from testigo.authority.admit import admit
from testigo.authority.claim import Hint, Lease, QueueClaim, claim
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import declare_dead, expire, take_back
from testigo.authority.promote import promote
from testigo.authority.renew import renew
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.sessions import NewSession, close_session, drain_session, open_session
from testigo.authority.settle import Settlement, settle
from testigo.authority.start import Held, start
from testigo.errors import Invalid
from testigo.journal.streams import streams
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Succeed, Yield
from tests.world import World

Send = Callable[[World], object]


def _any(value: object) -> Any:
    """What no type checker would let pass."""
    return value


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

CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("lease_id", {"lease_id": "seven"}),
    ("starts", {"starts": "yes"}),
    ("kinds", {"kinds": "work"}),
    ("kinds[0]", {"kinds": ("a\0",)}),
    ("queues[0].queue", {"queues": [QueueClaim("a\0", 1)]}),
    ("queues[0].slots", {"queues": [QueueClaim("q", -1)]}),
    ("queues[0].slots", {"queues": [QueueClaim("q", 2**40)]}),
    ("queues[0].hint.priority", {"queues": [QueueClaim("q", 1, Hint(2**40))]}),
    ("queues[0].hint.ready_at", {"queues": [QueueClaim("q", 1, Hint(0, "soon"))]}),
    ("queues[0].hint.id", {"queues": [QueueClaim("q", 1, Hint(0, "2030-01-01 00:00:00.5+00", "seven"))]}),
]

SETTLEMENTS: list[tuple[str, dict[str, Any]]] = [
    ("lease.job_id", {"job_id": ["seven"]}),
    ("lease.lease_id", {"lease_id": None}),
    ("lease.epoch", {"epoch": 2**40}),
    ("lease.revision", {"revision": -1}),
    ("cost", {"cost": -1.0}),
    ("cost", {"cost": float("nan")}),
    ("cost", {"cost": float("inf")}),
    ("cost", {"cost": "1"}),
    ("outcome", {"outcome": "succeeded"}),
    ("output", {"outcome": Succeed(_any(None))}),
    ("limitations", {"outcome": Degrade(encode(1), _any("one"))}),
    ("limitations[0]", {"outcome": Degrade(encode(1), _any((["one"],)))}),
    ("checkpoint", {"outcome": Yield(_any(None))}),
]

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


@pytest.mark.parametrize(("field", "given"), CLAIMS)
def test_a_claim_is_refused_by_the_field_that_is_wrong(world: World, field: str, given: dict[str, Any]) -> None:
    """One text is not several kinds, and a lease has an id (B-02)."""
    asked = {"queues": [QueueClaim("q", 1)], "kinds": ("work",), "slots": 1, "lease_id": new_id(), **given}
    refused = _refusal(lambda: world.db.run(claim, **asked, action=world.worker().action()))
    assert refused.field == field


@pytest.mark.parametrize(("field", "given"), SETTLEMENTS)
@pytest.mark.parametrize("command", [settle, settle_deferred])
def test_an_end_that_breaks_a_limit_changes_nothing(
    world: World, command: Any, field: str, given: dict[str, Any]
) -> None:
    """A cost that is no number would end every budget; what cannot be fenced is not settled (spec P-15, A-14)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    named = {name: value for name, value in given.items() if name in Lease._fields}
    more = {name: value for name, value in given.items() if name not in named}
    row = Settlement(**{"lease": lease._replace(**named), "outcome": Succeed(), **more})
    rows = [row] if command is settle else [(0, row)]
    refused = _refusal(lambda: world.db.run(command, rows, action=worker.action()))
    assert refused.field == f"{'settlements' if command is settle else 'rows'}[0].{field}"
    assert (world.state(job_id), world.job(job_id).cost) == ("running", 0.0)


def test_a_deferred_row_has_a_place_in_its_batch(world: World) -> None:
    """A receipt is filed for a place; one that cannot be is refused (spec P-09)."""
    world.submit()
    worker = world.worker()
    row = Settlement(worker.take(), Fail("E", "m"))
    for place in (-1, True, 2**31, "0"):
        refused = _refusal(
            lambda place=place: world.db.run(settle_deferred, [(place, row)], action=worker.action())  # type: ignore[misc]
        )
        assert refused.field == "rows[0].place"


def _refusal(send: Callable[[], object]) -> Invalid:
    with pytest.raises(Invalid) as refused:
        send()
    return refused.value
