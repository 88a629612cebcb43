"""A server that a test stops and starts again, at one address."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from fastapi import FastAPI

from testigo.access.roles import Role
from testigo.access.users import add_user
from testigo.authority.actions import Action
from testigo.settings import Web
from testigo.web.serve import Server, listening
from testigo.web.server import create
from tests.web.conftest import Site
from tests.worker.kit import PATIENCE_SECONDS, await_that
from tests.world import World

__all__ = ["Serving"]


class Serving:
    """A site at one address, of which the server may be away."""

    def __init__(self, database_url: str, world: World, settings: Web, stack: ExitStack) -> None:
        self._url, self._settings = database_url, settings
        self._port = 0
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        world.db.run(add_user, str(Role.OPERATOR), Role.OPERATOR, None, action=Action("tester"))
        stack.callback(self.stop)
        app = self.start()
        self.site = Site(app, f"http://127.0.0.1:{self._port}", world, stack)

    def start(self) -> FastAPI:
        """Serve, with nothing kept of what was served before."""
        app = create(self._url, settings=self._settings)
        entrance = listening("127.0.0.1", self._port)
        self._port = entrance.getsockname()[1]
        self._server = server = Server(app)
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [entrance]})
        self._thread.start()
        await_that(lambda: server.started, "the start of the server")
        return app

    def stop(self) -> None:
        """Stop, which waits for nobody."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(PATIENCE_SECONDS)
            assert not self._thread.is_alive()
        self._server = self._thread = None
