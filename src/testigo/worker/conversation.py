"""The runner's side of the conversation with its keeper: runs begin, are stopped, and end."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from testigo.errors import LeaseLost, ProtocolBroken
from testigo.rules.outcomes import Release
from testigo.rules.text import tidy
from testigo.worker.execute import run_async, run_sync
from testigo.worker.handlers import HandlerSpec, Registry
from testigo.worker.leaving import leave
from testigo.worker.outbox import Outbox
from testigo.worker.ports import Note, RunPort
from testigo.worker.protocol import Frames, Run, encode_frame
from testigo.worker.threads import Threads
from testigo.worker.wire import End, error_from_wire

__all__ = ["Conversation"]

_READ_BYTES = 256 * 1024


class Conversation:
    """What a runner hears, and what it does about it, until its keeper lets it rest.

    It belongs to the loop's thread, except for `call` and `note`, which any thread of a handler may use.
    """

    def __init__(self, sock: socket.socket, registry: Registry, *, slots: int, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = sock
        self._registry = registry
        self._loop = loop
        self._outbox = Outbox(sock, loop, self._reported)
        self._threads = Threads(slots)
        self._frames = Frames()
        self._runs: dict[int, RunPort] = {}
        self._calls: dict[int, tuple[Future[Any], Callable[[Any], Any]]] = {}
        self._call_numbers = itertools.count(1)
        self._is_retiring = False
        self._has_rested = False
        self._is_orphan = False
        self.is_draining = False
        self.is_over = False
        sock.setblocking(False)
        os.register_at_fork(after_in_child=self._orphan)
        loop.add_reader(sock, self._read)

    def call(self, ticket: int, name: str, arguments: list[Any], read: Callable[[Any], Any]) -> Future[Any]:
        """Ask the keeper; the answer is what `read` makes of it, or the error that it sent.

        Raises `PayloadTooLarge` for a question that no frame holds.
        """
        if self._is_orphan:
            raise LeaseLost("This process was forked by a handler and has no keeper.")
        number = next(self._call_numbers)
        frame = encode_frame(["call", number, ticket, name, arguments])
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # who gives up waiting does not take the question back
        self._calls[number] = (future, read)
        self._outbox.put(frame)
        return future

    def note(self, note: Note) -> None:
        """Tell the keeper, soon."""
        if not self._is_orphan:
            self._outbox.note(note)

    def _read(self) -> None:
        try:
            piece = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            leave()
        except OSError as error:
            leave(f"the socket to the keeper cannot be read: {error}")
        if not piece:
            leave()
        try:
            for message in self._frames.feed(piece):
                self._hear(message)
        except Exception as error:  # a keeper that is not understood would wait for ever
            leave(f"the keeper is not understood: {tidy(error, bytes_max=400)}")

    def _hear(self, message: list[Any]) -> None:
        match message:
            case ["run", list(rows)]:
                for row in rows:
                    self._begin(Run(*row))
            case ["stop", int(ticket), str(why)]:
                if (port := self._runs.get(ticket)) is not None:
                    port.stop(why)
            case ["answer", int(number), value, error]:
                self._answer(*self._calls.pop(number), value, error)
            case ["drain"]:
                self.is_draining = True
            case ["retire"]:
                self._is_retiring = True
                self._outbox.flush_soon()
            case _:
                raise ProtocolBroken(f"there is no message {message[0]!r} like this", field="message")

    def _begin(self, run: Run) -> None:
        port = RunPort(self, run.ticket, owner=run.owner)
        self._runs[run.ticket] = port
        spec = self._registry.get(run.kind)
        if spec is None:
            port.begin()
            self._outbox.end(port, End(Release(f"there is no handler for {run.kind!r} here")))
        elif spec.is_async:
            port.task = self._loop.create_task(self._run_async(spec, run, port))
        else:
            port.is_threaded = True
            self._threads.do(partial(self._run_sync, spec, run, port))

    async def _run_async(self, spec: HandlerSpec, run: Run, port: RunPort) -> None:
        port.begin()
        self._end(port, await run_async(spec, run, port))

    def _run_sync(self, spec: HandlerSpec, run: Run, port: RunPort) -> None:
        port.begin()
        self._end(port, run_sync(spec, run, port))

    def _end(self, port: RunPort, end: End) -> None:
        if self._is_orphan:
            os._exit(0)  # a handler forked and came back here, too: the run is the parent's to report
        self._outbox.end(port, end)

    def _reported(self, ports: list[RunPort]) -> None:
        for port in ports:
            del self._runs[port.ticket]
            if port.is_threaded:
                self._threads.did()
        if self._is_retiring and not self._runs:
            self._rest()

    def _rest(self) -> None:
        if not self._has_rested:
            self._has_rested = True
            self._outbox.put(encode_frame(["resting"]))
        elif self._outbox.is_empty:
            self.is_over = True
            self._loop.stop()

    def _answer(self, future: Future[Any], read: Callable[[Any], Any], value: Any, error: Any) -> None:
        if error is None:
            future.set_result(read(value))
        else:
            future.set_exception(error_from_wire(error))

    def _orphan(self) -> None:
        """In a child that a handler forked: leave the conversation to the parent, and obey signals again."""
        self._is_orphan = True
        self._socket.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
