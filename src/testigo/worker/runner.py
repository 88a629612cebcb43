"""The runner: the child process in which handlers run (decision 4 of the architecture; spec P-20).

    python -m testigo.worker.runner --socket FD --slots N module:app

It speaks with its keeper over the socket that it inherits, says what it can run, runs what it is sent,
and ends with its keeper. It holds no credentials and knows no database. A handler that blocks the loop,
holds the interpreter or ends the process harms this process only.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import fcntl
import gc
import io
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.text import tidy
from testigo.worker.conversation import Conversation
from testigo.worker.execute import detail_of
from testigo.worker.handlers import Registry
from testigo.worker.leaving import die_with_parent, leave, watch
from testigo.worker.loading import load
from testigo.worker.logs import keep_logs
from testigo.worker.protocol import encode_frame

__all__ = ["main", "serve"]

BROKEN_APPLICATION_STATUS = 3
_DESCRIPTOR_MIN = 200
"""Where the protocol's descriptor goes, out of the way of code that closes or guesses low ones."""


def main() -> int:
    """Run what a keeper sends until it says that this is all. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="testigo.worker.runner")
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("application")
    given = parser.parse_args()
    return serve(given.socket, given.slots, given.application)


def serve(descriptor: int, slots: int, named: str, *, prepare: Callable[[socket.socket], object] | None = None) -> int:
    """Load the application and run what the keeper sends; `prepare` is called first, with the socket to it."""
    die_with_parent()
    sock = _out_of_the_way(descriptor)
    watch(sock)
    _outlast_signals()
    if prepare is not None:
        prepare(sock)
    with suppress(OSError, ValueError, io.UnsupportedOperation):  # a standard error that is none
        faulthandler.enable()
    try:
        application = load(named)
        hello = _hello(application)
    except BaseException as error:  # whatever a module raises while it is imported
        sock.sendall(encode_frame(["broken", _told(named, error)]))
        return BROKEN_APPLICATION_STATUS
    keep_logs()
    sock.sendall(encode_frame(["hello", hello]))
    gc.collect()
    gc.freeze()  # what is loaded stays; no collection need look at it again
    _converse(sock, application.registry, slots)
    return 0


def _converse(sock: socket.socket, registry: Registry, slots: int) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    conversation = Conversation(sock, registry, slots=slots, loop=loop)
    while not conversation.is_over:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue  # of a task that a handler left behind: it is nobody's wish to end the others
        except BaseException as error:  # a handler closed what the loop stands on
            leave(f"the loop is broken: {tidy(error, bytes_max=400)}")


def _hello(application: Any) -> dict[str, Any]:
    """What the keeper needs to know; TESTIGO_DEPLOYMENT names the release of the code that runs here."""
    deployment = os.environ.get("TESTIGO_DEPLOYMENT") or None
    if deployment is not None:
        fields.name(deployment, field="TESTIGO_DEPLOYMENT")
    return {
        "pid": os.getpid(),
        "app": application.name,
        "client": application.name,
        "url": application.url,
        "schema": application.schema,
        "kinds": {spec.kind: {"queue": spec.queue, "isolation": spec.isolation} for spec in application.registry},
        "deployment": deployment,
    }


def _told(named: str, error: BaseException) -> str:
    why = error.message if isinstance(error, Invalid) and error.field == "app" else f"\n{detail_of(error)}"
    return tidy(f"{named} cannot be loaded. {why}")


def _out_of_the_way(descriptor: int) -> socket.socket:
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR_MIN)
    except OSError:  # so many descriptors are not allowed here
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return socket.socket(fileno=moved)


def _outlast_signals() -> None:
    """Leave signals to the keeper. They are not ignored, for programs that handlers start would inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)


if __name__ == "__main__":
    sys.exit(main())
