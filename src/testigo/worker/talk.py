"""What a keeper and its runners say to each other, and how a runner that is gone is noticed (spec P-20).

Whatever comes from a runner is data from outside. One that breaks the protocol is killed, and no other
runner is touched by it.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from testigo.errors import LeaseLost, ProtocolBroken
from testigo.worker.asking import Asker, Grumbler
from testigo.worker.desk import Desk, answer_call
from testigo.worker.dispatch import Dispatch
from testigo.worker.hello import Hello, hello_from
from testigo.worker.protocol import encode_frame
from testigo.worker.reporter import Reporter
from testigo.worker.runners import Runner, Runners, State
from testigo.worker.wire import backends_from_wire, error_to_wire

__all__ = ["Talk"]

_log = logging.getLogger("testigo.worker")


class Heard(Protocol):
    """What a keeper makes of what is said."""

    def greeted(self, hello: Hello) -> None:
        """A runner has loaded the application."""

    def broken(self, reason: str) -> None:
        """A runner could not load it."""

    def died(self) -> None:
        """A runner ended unasked, or was killed."""

    def connected(self, then: Callable[[], object]) -> None:
        """The publisher has a new connection, and uses it once `then` was called."""


class Talk:
    """The sockets of all runners. Only the keeper's main thread uses it."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        runners: Runners,
        dispatch: Dispatch,
        heard: Heard,
        *,
        post: Callable[[Callable[[], object]], object],
    ) -> None:
        """`post` has the main thread make a call. Runners are heard once they are watched."""
        self._selector = selector
        self._runners = runners
        self._dispatch = dispatch
        self._heard = heard
        self._post = post
        self._grumbler = Grumbler()
        self._watched: dict[Runner, int] = {}
        self.desk: Desk | None = None
        """Who answers calls, and …"""
        self.reporter: Reporter | None = None
        """… who brings on notes, once there is a session."""

    def hear(self, runner: Runner, events: int) -> None:
        """What a runner sends, or has room for."""
        if events & selectors.EVENT_WRITE:
            runner.child.flush()
        try:
            messages, is_open = runner.child.receive()
            self._understand(runner, messages)
        except ProtocolBroken as error:
            _log.error("runner %d is killed: %s", runner.pid, error.message)
            runner.kill("protocol")
            is_open = False
        if not is_open:
            self._unwatch(runner)
            if not runner.child.has_exited():
                runner.hang_up()

    def attend(self) -> None:
        """Wait for the words of new runners, and for room where not all could be sent."""
        for runner in self._runners:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if runner.child.has_unsent else 0)
            watched = self._watched.get(runner)
            if watched is None:
                self._selector.register(runner.child.socket, wanted, runner)
            elif watched not in (wanted, 0):
                self._selector.modify(runner.child.socket, wanted, runner)
            self._watched[runner] = wanted if watched != 0 else 0

    def bury(self, now: float) -> None:
        """Runners that are gone: what they said before counts, then their runs are judged."""
        for runner in self._runners:
            if not runner.child.has_exited():
                continue
            if runner.why_killed != "protocol":
                with suppress(ProtocolBroken):
                    self._understand(runner, runner.child.last_words())
            status = runner.child.exit_status()
            runs = len(runner.runs)
            was_killed = self._dispatch.gone(runner, status, now)
            self._unwatch(runner)
            del self._watched[runner]
            self._runners.remove(runner)
            if runner.state is State.RETIRING and not runs:
                continue
            self._heard.died()
            if runner.state is State.STARTING:
                self._runners.delay(now)
            if not was_killed:
                self._grumbler.say("runner %d ended with status %d and %d runs", runner.pid, status, runs)

    def _understand(self, runner: Runner, messages: list[list[Any]]) -> None:
        for message in messages:
            match message:
                case ["ended", rows]:
                    self._dispatch.end(runner, rows)
                case ["call", int(call), int(ticket), str(what), arguments]:
                    self._call(runner, call, ticket, what, arguments)
                case ["notes", list(notes)]:
                    self._note(runner, notes)
                case ["hello", _] if runner.state is State.STARTING:
                    self._greet(runner, message)
                case ["broken", str(reason)] if runner.state is State.STARTING:
                    runner.kill("broken")
                    self._heard.broken(reason)
                case ["resting"] if not runner.runs:
                    self._unwatch(runner)
                    runner.child.close()
                case _:
                    raise ProtocolBroken(f"a runner said {str(message[0])[:40]!r}", field="message")

    def _greet(self, runner: Runner, message: list[Any]) -> None:
        hello = hello_from(message)
        if hello is None:
            raise ProtocolBroken("a runner's hello is none", field="hello")
        self._heard.greeted(self._runners.greeted(runner, hello))

    def _call(self, runner: Runner, call: int, ticket: int, what: str, arguments: object) -> None:
        run = self._dispatch.run_of(runner, ticket)
        if run is None or self.desk is None:
            self._answer(runner, ["answer", call, None, error_to_wire(LeaseLost("The run has ended."))])
            return
        if what == "connected" and runner.publishes:
            runner.backends = backends_from_wire(arguments)
            self._heard.connected(partial(self._answer, runner, ["answer", call, None, None]))
            return

        def task(asker: Asker) -> None:
            value, error = answer_call(asker, run, what, arguments)
            self._post(partial(self._answer, runner, ["answer", call, value, error]))

        self.desk.put(task, of=run.ticket)

    def _answer(self, runner: Runner, message: list[Any]) -> None:
        if runner in self._watched:
            runner.child.send(encode_frame(message))

    def _note(self, runner: Runner, notes: list[Any]) -> None:
        for note in notes:
            run = self._dispatch.run_of(runner, note[0] if isinstance(note, list) and note else None)
            if run is not None and self.reporter is not None:
                self.reporter.note(run, note)

    def _unwatch(self, runner: Runner) -> None:
        if self._watched.get(runner, 0):
            self._watched[runner] = 0
            self._selector.unregister(runner.child.socket)
