"""An installation for the length of one test: a schema of its own on a real server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sqlalchemy.schema import DropSchema

from testigo.app import App
from testigo.store.database import Database
from testigo.testing.clock import Clock

__all__ = ["Trial", "trial"]


class Trial:
    """An installation that nobody else uses; `url` and `schema` name it, `database` runs commands on it."""

    def __init__(self, url: str, schema: str, uses: ExitStack) -> None:
        self.url = url
        self.schema = schema
        self.database = Database(url, schema=schema)
        self.clock = Clock(self.database)
        self._uses = uses

    def use(self, *apps: App) -> None:
        """Have these Apps use this installation until the test ends, whatever they were made with."""
        for app in apps:
            self._uses.enter_context(app.connected_to(self.url, self.schema))


@contextmanager
def trial(url: str) -> Iterator[Trial]:
    """A new installation on the server of this URL, dropped with everything in it when it is left."""
    with ExitStack() as uses:
        one = Trial(url, f"test_{uuid.uuid4().hex}", uses)
        uses.callback(one.database.close)
        one.database.migrate()
        uses.callback(one.database.run, lambda c: c.execute(DropSchema(one.schema, cascade=True)))
        yield one
