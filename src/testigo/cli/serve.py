"""`testigo serve`: the panel and the API."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.ordering import order_of
from testigo.cli.worker import Level

if TYPE_CHECKING:
    from testigo.configuration import Installation
    from testigo.settings import Web
    from testigo.store.database import Database

__all__ = ["entrance_at", "group", "serve_here"]

group = call.group("serve", "")

PORT = 8000
LOCAL = "local"
"""Who a login link is for, on a database of one's own."""


class Opened(NamedTuple):
    """Where the panel is, and the link that logs in once, if one was made."""

    panel: str
    api: str
    login_link: str | None
    nobody: bool
    """Whether there is no user yet."""


@command(group, "serve", "serve", "serve --host 0.0.0.0 --port 80 --workers 4", "serve --url embedded:demo-data")
def serve(
    here: Call,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen at this address.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Listen at this port; 0 takes a free one.")
    ] = PORT,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, max=64, help="Server processes on that port.")
    ] = 1,
    log_level: Annotated[
        Level, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = Level.WARNING,
) -> None:
    """Serve the panel, at /horizon, and the API, at /api/v1.

    Everybody needs a login or a token: `testigo user add`, `testigo token create`. On an embedded database a link is
    printed that logs in once, as administrator, within 15 minutes. Behind a proxy, set TESTIGO_WEB_PUBLIC_URL to where
    browsers find the panel; what else may be set is shown by `testigo config show`. Ctrl-C or SIGTERM stops it within
    3 seconds, whatever is open. The log goes to stderr, with --json as an object a line.
    """
    serve_here(here, here.place, host=host, port=port, workers=workers, log_level=log_level)


def serve_here(
    here: Call,
    place: Installation,
    *,
    host: str,
    port: int | None,
    workers: int = 1,
    log_level: Level = Level.WARNING,
    lets_in: bool = False,
) -> None:
    """Serve an installation, say where, and return when it was told to stop. Raises `Misuse` for a port in use.

    Without a `port` it takes the usual one, or any that is free where somebody listens there. On an embedded
    database, and wherever it `lets_in`, it makes a link that logs in once.
    """
    from testigo.configuration import web_settings
    from testigo.web.__main__ import log_to_stderr
    from testigo.web.serve import Server
    from testigo.web.server import create
    from testigo.web.several import Several

    settings = web_settings()
    with entrance_at(host, port) as entrance, _running(here, place):
        log_to_stderr(log_level, as_json=here.json)
        opened = _opened(here, place, settings, entrance, lets_in=lets_in)
        here.answer(opened._asdict(), lambda: _tell(opened))
        if workers == 1:
            Server(create(place.url, schema=place.schema, settings=settings)).run(sockets=[entrance])
        else:
            os.environ.update(TESTIGO_URL=place.url, TESTIGO_SCHEMA=place.schema)
            arguments = [f"--log-level={log_level}", *(["--json"] if here.json else [])]
            Several(entrance, workers, settings.stop_seconds, arguments).run()


def entrance_at(host: str, port: int | None) -> socket.socket:
    """A socket that listens there; without a port at the usual one, or any where that is taken. Raises `Misuse`."""
    from testigo.web.serve import listening

    wanted = port if port is not None else _usual_port(host)
    try:
        return listening(host, wanted)
    except OSError as error:
        if port is None and error.errno == errno.EADDRINUSE:  # somebody took it just now
            return listening(host, 0)
        raise Misuse(_not_listening(host, wanted, error)) from error


def _usual_port(host: str) -> int:
    """The usual port if nobody answers there, else 0: any that is free."""
    with socket.socket() as probe:
        return 0 if probe.connect_ex((host, PORT)) == 0 else PORT


def _not_listening(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is taken by another program: choose one with --port; 0 takes a free one."
        case errno.EACCES:
            return f"You may not listen at port {port} of {host}: choose one from 1024 on with --port."
        case _:
            why = (error.strerror or str(error)).partition(" (while ")[0]  # Python adds the address once more
            return f"{host}:{port} cannot be listened at: {why}."


@contextmanager
def _running(here: Call, place: Installation) -> Iterator[None]:
    """An embedded server runs meanwhile, so that it is started once for whatever asks it."""
    from testigo.store.embedded import EmbeddedServer
    from testigo.store.urls import embedded_directory

    directory = embedded_directory(place.url)
    if directory is None:
        yield
        return
    with EmbeddedServer.use(directory, starts=lambda: here.note("starting the embedded database …")):
        yield


def _opened(here: Call, place: Installation, settings: Web, entrance: socket.socket, *, lets_in: bool) -> Opened:
    """Where it is, and how to get in. A database that does not answer now is no reason not to serve."""
    from testigo.access.users import users
    from testigo.errors import Busy
    from testigo.store.database import Database
    from testigo.store.urls import embedded_directory

    base = settings.public_url.rstrip("/") or _address(entrance)
    link, nobody = None, False
    with Database(place.url, schema=place.schema, pool_size=1) as database:
        try:
            if lets_in or embedded_directory(place.url) is not None:
                link = _link(here, database, base)
            else:
                nobody = not database.run(users, limit=1).items
        except Busy as error:
            here.note(f"The database does not answer yet: {error.message}")
    return Opened(f"{base}/horizon", f"{base}/api/v1", link, nobody)


def _link(here: Call, database: Database, base: str) -> str | None:
    """A link that logs in once; None for whom somebody has disabled, which is no reason not to serve either."""
    from testigo.access.act import act
    from testigo.access.logins import make_link
    from testigo.access.secret import Secret
    from testigo.errors import StateConflict

    secret, order = Secret.new(), order_of(here, "links.create", f"user:{LOCAL}")
    try:
        database.run(act, order, lambda c: make_link(c, LOCAL, secret.digest, action=order.action))
    except StateConflict as error:
        here.note(f"No login link is made. {error.message} {error.remedy}")
        return None
    return f"{base}/horizon/login?link={secret.text}"


def _address(entrance: socket.socket) -> str:
    """The address at which this machine's browser finds the socket."""
    host, port = entrance.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _tell(opened: Opened) -> None:
    """Where to go, on lines that a terminal makes links of."""
    print(f"The panel is at {opened.panel}, the API at {opened.api}.")
    if opened.login_link:
        print(f"This link logs you in, once, within 15 minutes:\n  {opened.login_link}")
    if opened.nobody:
        print("Nobody can log in yet: testigo user add NAME --role admin")
    print("Ctrl-C stops it.", flush=True)
