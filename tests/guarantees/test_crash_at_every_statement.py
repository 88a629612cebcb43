"""Promises 1, 4 and 5: wherever a command breaks off, it is sent again, and nothing shows.

Every command runs undisturbed first. Then, in the same world, it breaks at each of its statements in
each way in which a connection can break, and the same command is sent again: by its caller, who saw
the error, or by the door, whose caller sees none. Its answer and every row of every table must be
those of the undisturbed run.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from testigo import authority, evidence, operations, statistics
from testigo.authority.actions import Action
from testigo.authority.admit import waits_for_admission
from testigo.authority.expire import read_beats
from testigo.authority.probe import probe
from testigo.authority.processes import holding, sessions_on, terminate_backends
from testigo.authority.time_out import read_runs
from testigo.errors import AuthorityUnavailable
from testigo.operations import preview
from testigo.settings import STORE
from tests import careless
from tests.crash import Fault
from tests.scenes import SCENES, Call, call, told
from tests.stage import Stage, differences
from tests.world import World

Sender = Callable[[Call], Any]
"""How a command is sent, and sent again, until it has an answer."""

LOOKS = {read_beats, waits_for_admission, read_runs, probe, sessions_on, holding, terminate_backends, preview}
"""The commands that only look."""

PARTS = {"edges", "jobs", "receipts", "write", "admit_these", "begin_within", "cancel_within", "end_within"}
READS = {"explain", "read"}
"""The modules and functions of the authority that are parts of commands, and those that change nothing."""


@pytest.fixture
def world(stage: Stage) -> World:
    """A world that is empty, and can be put back."""
    stage.clear()
    return World(stage.db)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Say how often the door sends a command; it never pauses in between, for nobody here is to be spared."""
    return lambda count: monkeypatch.setattr(
        "testigo.store.database.STORE", replace(STORE, tries=count, retry_first_seconds=0.0)
    )


@pytest.mark.parametrize("name", SCENES)
def test_a_command_that_broke_off_anywhere_is_sent_again_and_nothing_shows(
    stage: Stage, world: World, tries: Callable[[int], None], name: str
) -> None:
    """A break leaves everything or nothing; the same command, sent again, finds out which (spec B-02, P-01 to P-03)."""
    tries(1)

    def its_caller(call: Call) -> Any:
        with suppress(AuthorityUnavailable):
            return call.send(stage.db.run)
        return call.send(stage.db.run)

    seen = what_shows(stage, SCENES[name].prepare(world), its_caller)
    assert not seen, "\n\n".join(map(str, seen))


@pytest.mark.parametrize("name", SCENES)
def test_the_door_hides_every_break(stage: Stage, world: World, tries: Callable[[int], None], name: str) -> None:
    """`Database.run` sends a command again, whole, and whoever called it sees no break (spec P-01, P-03)."""
    tries(2)
    seen = what_shows(stage, SCENES[name].prepare(world), lambda call: call.send(stage.db.run))
    assert not seen, "\n\n".join(map(str, seen))


def test_every_command_is_broken() -> None:
    """No command of the authority, of operations, of statistics or of evidence is left out (spec B-02)."""
    attacked = {scene.command for scene in SCENES.values()}
    assert not [command.__qualname__ for command in commands() if command not in attacked]


ALWAYS = set(Fault)
AFTER_THE_COMMIT = {Fault.UNANSWERED, Fault.COMMITTING}


@pytest.mark.parametrize(
    ("command", "faults"),
    [
        (careless.without_a_transaction, ALWAYS),
        (careless.receipt_first, ALWAYS),
        (careless.receipt_that_ignores_another, {Fault.COMMITTING}),
        (careless.receipt_that_is_not_looked_up, AFTER_THE_COMMIT),
        (careless.no_receipt, AFTER_THE_COMMIT),
        (careless.another_answer, AFTER_THE_COMMIT),
    ],
)
def test_a_command_that_does_not_keep_the_rules_is_caught(
    stage: Stage, world: World, tries: Callable[[int], None], command: Callable[..., str], faults: set[Fault]
) -> None:
    """These tests fail for a command whose receipt is not its last effect, in its transaction (spec P-02)."""
    tries(2)
    seen = what_shows(stage, call(command, action=world.action()), lambda call: call.send(stage.db.run))
    assert {each.fault for each in seen} == faults


def commands() -> Iterator[Callable[..., Any]]:
    """Every public function of these packages that is sent on a connection."""
    for package in (authority, operations, statistics):
        for found in pkgutil.iter_modules(package.__path__):
            module = import_module(f"{package.__name__}.{found.name}")
            if found.name not in PARTS | READS:
                yield from (getattr(module, name) for name in set(module.__all__) - PARTS if is_command(module, name))
    for found in pkgutil.iter_modules(evidence.__path__):
        module = import_module(f"{evidence.__name__}.{found.name}")
        public = [
            getattr(module, name) for name in set(getattr(module, "__all__", ())) - PARTS if is_command(module, name)
        ]
        yield from (each for each in public if inspect.get_annotations(each).get("action") == Action.__name__)


def is_command(module: ModuleType, name: str) -> bool:
    """Whether this is a function that takes a connection as commands do."""
    public = getattr(module, name)
    return inspect.isfunction(public) and inspect.get_annotations(public).get("c") == "Connection"


@dataclass(frozen=True, slots=True)
class Break:
    """A break that showed: where it was, and what the caller or the database had of it."""

    statement: str
    fault: Fault
    seen: str

    def __str__(self) -> str:
        return f"{self.fault} at {self.statement}\n{self.seen}"


def what_shows(stage: Stage, call: Call, send: Sender) -> list[Break]:
    """Break the command at each statement in each way, and tell what shows of it; at best nothing."""
    stage.keep()
    before = stage.rows()
    connect(stage)
    stage.breaker.arm()
    undisturbed, statements = perform(stage, call, lambda call: call.send(stage.db.run))
    assert call.command in LOOKS or stage.rows() != before, "the command has nothing to do"
    picture = stage.picture(call, undisturbed)
    seen = []
    for fault in Fault:
        for at, statement in enumerate(statements):
            if fault is Fault.COMMITTING and not commits(statements, at):
                continue
            stage.put_back()
            connect(stage)
            stage.breaker.arm(at, fault)
            answer, sent = perform(stage, call, showing_errors(send))
            assert stage.breaker.broke, f"nothing is {fault} at {statement}, but there were {sent}"
            found = stage.picture(call, undisturbed if answer in call.leftovers else answer)
            if found != picture:
                seen.append(Break(statement, fault, differences(found, picture)))
    return seen


def connect(stage: Stage) -> None:
    """Have a connection that is open: what is asked of a new one is no statement of a command's."""
    stage.db.run(lambda c: c.get_isolation_level())


def perform(stage: Stage, call: Call, send: Sender) -> tuple[Any, list[str]]:
    """Send a command until it is answered, and to its end if it goes in steps; returns answer and statements."""
    if call.steps:
        stage.await_all()
    try:
        answer = told(send(call))
    finally:
        stage.breaker.finish()
    statements = [*stage.breaker.statements]
    for _ in range(call.steps):
        stage.await_all()
        call.send(stage.db.run)
    return answer, statements


def showing_errors(send: Sender) -> Sender:
    """What this sender's caller sees, be it an answer or an error."""

    def seen(call: Call) -> Any:
        try:
            return send(call)
        except Exception as error:
            return f"none, but {error!r}"

    return seen


def commits(statements: list[str], at: int) -> bool:
    """Whether the statement ends a transaction: it is COMMIT, or each statement is one of its own."""
    return statements[at] == "COMMIT" or statements[0] != "BEGIN"
