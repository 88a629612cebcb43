"""A command as it is sent, and the register of the scenes that prepare one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from testigo.access.logins import LinkReceipt, Login
from testigo.authority.actions import SessionAction
from testigo.authority.claim import Claimed
from testigo.authority.start import start
from testigo.operations import Operation
from tests.world import World

__all__ = ["LATER", "SCENES", "Call", "Scene", "call", "scene", "told"]

LATER = datetime(2040, 1, 1, tzinfo=UTC)
"""A date that no test lives to see."""

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A command with every input that it takes, fixed before its first try (spec P-01).

    `other` is a call of the same command under the same action, with other content; None for a
    command that keeps no receipt. `leftovers` are what such a command may answer when an earlier send
    did, or is doing, all there was to do. Some go in steps, of which each does only what everybody sees:
    such a one is at its end after so many `steps`, 0 for any other.
    """

    command: Command
    args: tuple[Any, ...]
    options: dict[str, Any]
    other: Call | None = None
    leftovers: tuple[object, ...] = ()
    steps: int = 0

    def send(self, run: Callable[..., Any]) -> Any:
        """Send it through `run`, such as `Database.run`, and return the answer."""
        return run(self.command, *self.args, **self.options)

    def but(self, *args: Any, **options: Any) -> Call:
        """The same call, which knows one under the same action with other content."""
        return replace(self, other=replace(self, args=args or self.args, options={**self.options, **options}))

    def then(self, *leftovers: object) -> Call:
        """The same call, which knows what else it may answer when it is sent again."""
        return replace(self, leftovers=leftovers)

    def in_steps(self, steps: int, *leftovers: object) -> Call:
        """The same call, which goes in steps."""
        return replace(self, steps=steps, leftovers=leftovers)


class Scene(NamedTuple):
    """A command of the authority, and what sets up a world and returns a call of it."""

    command: Command
    prepare: Callable[[World], Call]

    @property
    def keeps_a_receipt(self) -> bool:
        """Whether the command has an action and keeps its answer; a start needs none: what runs has started."""
        return "action" in inspect.get_annotations(self.command) and self.command is not start

    @property
    def is_a_workers(self) -> bool:
        """Whether only a worker sends it, as a turn of its session."""
        return bool(inspect.get_annotations(self.command)["action"] == SessionAction.__name__)


SCENES: dict[str, Scene] = {}
"""The scenes by what they show, in the words of their functions' names."""


def scene(command: Command) -> Callable[[Callable[[World], Call]], Callable[[World], Call]]:
    """Register a scene of this command under its function's name."""

    def register(prepare: Callable[[World], Call]) -> Callable[[World], Call]:
        name = prepare.__name__.replace("_", " ")
        assert name not in SCENES, f"two scenes are called {name}"
        SCENES[name] = Scene(command, prepare)
        return prepare

    return register


def call(command: Command, *args: Any, **options: Any) -> Call:
    """A call of this command."""
    return Call(command, args, options)


def told(answer: Any) -> Any:
    """What an answer says, whether it was given first or again.

    A claim that is answered again tells of the present: where to look on, and what it passed over, are
    hints of the moment (spec P-05). When a login ends is counted from the moment in which it took effect, and
    so is when an operation began.
    """
    if isinstance(answer, Operation):
        answer = replace(answer, began_at=LATER)
    if isinstance(answer, Login | LinkReceipt):
        answer = replace(answer, expires_at=LATER)
    if isinstance(answer, Claimed):
        answer = replace(answer, hints={}, unfit=())
    return replace(answer, replayed=False) if hasattr(answer, "replayed") else answer
