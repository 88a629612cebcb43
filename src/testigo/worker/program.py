"""The program of a worker: it ends with 0 when it was drained, or as the error says."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from testigo.configuration import installation, retention_settings, worker_settings
from testigo.errors import Error
from testigo.rules.fields import whole
from testigo.settings import SESSIONS
from testigo.worker.keeper_log import written_apart
from testigo.worker.lines import JsonLines
from testigo.worker.mail import Mailbox
from testigo.worker.order import Order
from testigo.worker.runners import Runners
from testigo.worker.signals import Signals

__all__ = ["main"]

_LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one worker to its end, and return its exit status."""
    given = _parser().parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if given.json else logging.Formatter(_LINE))
    logging.basicConfig(level=given.log_level.upper(), handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        return _run_inline(given) if given.inline else _run(_order(given))
    except Error as error:
        logging.getLogger("testigo.worker").error("%s", error)
        return error.exit_status


def _run(order: Order) -> int:
    """Run a keeper, which is loaded while its runners load the application: a restart takes half as long."""
    mail = Mailbox()
    signals = Signals(mail.signal_fd)
    runners = Runners([order.app], order.options, order.runners)
    if not order.reload:  # whose keeper looks at the files before anybody reads them
        runners.tend(time.monotonic())
    from testigo.worker.keeper import Keeper

    with written_apart():
        return Keeper(order, runners, mail, signals).run()


def _order(given: argparse.Namespace) -> Order:
    options = worker_settings({"slots": given.slots, "drain_seconds": given.drain_seconds})
    runners = os.cpu_count() or 1 if given.runners is None else given.runners
    return Order(
        app=given.app,
        url=given.url,
        schema=given.schema,
        queues=_queues(given),
        runners=whole(min(runners, options.runners_max), field="runners", low=1, high=options.runners_max),
        agent=given.agent,
        replace=given.replace,
        term_seconds=given.term_seconds,
        reload=given.reload,
        metrics_port=given.metrics_port,
        options=options,
        retention=retention_settings(),
    )


def _run_inline(given: argparse.Namespace) -> int:
    """Run the handlers in this process, until SIGTERM, or a Ctrl-C that meets no handler."""
    from testigo.store.database import Database
    from testigo.worker.inline import InlineWorker
    from testigo.worker.loading import load  # a keeper stays small, and has no handlers

    application = load(given.app)
    where = installation(given.url or application.url, given.schema or application.schema)
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    with (
        suppress(KeyboardInterrupt),
        Database(where.url, schema=where.schema) as db,
        InlineWorker(db, application.registry, queues=_queues(given), agent=given.agent) as worker,
    ):
        kinds = ", ".join(application.registry.kinds)
        logging.getLogger("testigo.worker").info("runs %s in this process, queues %s", kinds, ", ".join(worker.queues))
        worker.serve(leaving)
    return 0


def _queues(given: argparse.Namespace) -> tuple[str, ...]:
    """Those that were named, each once, in their order."""
    return tuple(dict.fromkeys(given.queues.split(","))) if given.queues else ()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m testigo.worker", description="Run the handlers of an application.")
    parser.add_argument("app", help="the application, as module:name")
    parser.add_argument("--url", help="the database; by default the App's, TESTIGO_URL, or an embedded one")
    parser.add_argument("--schema", help="the schema of the installation")
    parser.add_argument("--queues", help="the queues to serve, in their order, between commas; by default the App's")
    parser.add_argument("--runners", type=int, help="processes that run handlers; by default as many as cores")
    parser.add_argument("--slots", type=int, help="runs of one runner at a time")
    parser.add_argument("--agent", help="a name of its own, exclusive among all workers")
    parser.add_argument("--replace", action="store_true", help="take the name from a worker that has it")
    parser.add_argument("--term-seconds", type=float, default=SESSIONS.term_seconds, help="the term of its session")
    parser.add_argument("--drain-seconds", type=float, help="how long runs may go on after the first SIGTERM")
    parser.add_argument("--reload", action="store_true", help="fresh runners when a Python file here changes")
    parser.add_argument("--inline", action="store_true", help="run one handler at a time in this process: to debug it")
    parser.add_argument("--metrics-port", type=int, help="serve metrics for Prometheus on 127.0.0.1")
    parser.add_argument("--json", action="store_true", help="the log as lines of JSON")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser
