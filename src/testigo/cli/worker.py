"""`testigo worker`: run the handlers of an application."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.settings import SESSIONS, WORKER

__all__ = ["group"]

group = call.group("worker", "")


class Level(StrEnum):
    """How much a worker says of itself."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@command(
    group,
    "worker",
    "worker myapp:app",
    "worker myapp:app --queues urgent,media --runners 4 --slots 20",
    "worker myapp:app --reload",
)
def worker(
    here: Call,
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The application.", show_default=False)],
    queues: Annotated[
        str | None,
        typer.Option("--queues", metavar="Q1,Q2", help="Serve these, in this order.", show_default="the App's"),
    ] = None,
    runners: Annotated[
        int | None,
        typer.Option(
            "--runners", metavar="N", min=1, help="Processes that run handlers.", show_default="as many as cores"
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", metavar="N", min=1, help="Runs of one runner at a time.", show_default=str(WORKER.slots)
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="A name that no other worker may have meanwhile.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the name from a worker that has it.")] = False,
    term_seconds: Annotated[
        float,
        typer.Option(
            "--term-seconds",
            metavar="SECONDS",
            help="Silent for so long, it is taken for dead.",
            show_default=f"{SESSIONS.term_seconds:g}",
        ),
    ] = SESSIONS.term_seconds,
    drain_seconds: Annotated[
        float | None,
        typer.Option(
            "--drain-seconds",
            min=0,
            metavar="SECONDS",
            help="How long runs may go on after the first Ctrl-C.",
            show_default=f"{WORKER.drain_seconds:g}",
        ),
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Fresh runners when a Python file here changes.")] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run one handler at a time in this process: to debug it.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", metavar="PORT", help="Serve metrics for Prometheus on 127.0.0.1."),
    ] = None,
    log_level: Annotated[
        Level, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = Level.INFO,
) -> None:
    """Run the handlers of an application until told to stop.

    The first Ctrl-C or SIGTERM lets what runs finish, the second gives it back at once. Handlers run in processes of
    their own, which hold no credentials. What else may be set is shown by `testigo config show`. The log goes to
    stderr, with --json as an object a line.
    """
    named = {
        "--url": here.url,
        "--schema": here.schema,
        "--queues": queues,
        "--runners": runners,
        "--slots": slots,
        "--agent": agent,
        "--term-seconds": term_seconds,
        "--drain-seconds": drain_seconds,
        "--metrics-port": metrics_port,
        "--log-level": log_level,
    }
    given = [f"{name}={value}" for name, value in named.items() if value is not None]
    flags = {"--replace": replace, "--reload": reload, "--inline": inline, "--json": here.json}
    words = [app, *given, *(name for name, is_set in flags.items() if is_set)]
    # It becomes the keeper, which needs nothing of this: a quarter of its memory would be the command line's.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "testigo.worker", *words])  # noqa: S606
