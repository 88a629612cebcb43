"""The application: both doors, what stands before them, and what goes on behind them while it serves.

    app = create()                                    # where `configuration` says
    uvicorn --factory testigo.web.server:from_environment

Nothing is opened before the server starts, and a database that is away then is no reason not to start: every
route says so until it is back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware

from testigo.configuration import installation, retention_settings, web_settings
from testigo.settings import Web
from testigo.store.blobs import BlobStore, blobs_directory
from testigo.store.database import AsyncDatabase
from testigo.store.urls import own_directory
from testigo.web.api.routes import routes as api
from testigo.web.background import Background, chores
from testigo.web.door import Door
from testigo.web.entrance import routes as entrance
from testigo.web.oidc import routes as oidc
from testigo.web.panel.badge import Badge
from testigo.web.panel.routes import routes as panel
from testigo.web.problems import Failures, add_handlers
from testigo.web.security.counted import Answers, Counted
from testigo.web.security.headers import Headers
from testigo.web.security.rate import Rate
from testigo.web.security.requests import Named, Sized
from testigo.web.security.strangers import Strangers
from testigo.web.signals.hub import Hub
from testigo.web.signals.routes import routes as signals

__all__ = ["create", "from_environment"]


def create(database_url: str | None = None, *, schema: str | None = None, settings: Web | None = None) -> FastAPI:
    """The application on an installation; without arguments, the one that `configuration` finds.

    Handlers find at `app.state` the `door`, the `hub` of signals and the `settings`. Raises
    `Invalid` and `SettingInvalid` for what cannot be; the database is first asked when the server has started.
    """
    place = installation(database_url, schema)
    chosen = web_settings() if settings is None else settings
    database = AsyncDatabase(place.url, schema=place.schema, pool_size=chosen.pool_size)
    hub = Hub(database, chosen)
    background = Background(database, chores(retention_settings()))
    answers = Answers()

    @asynccontextmanager
    async def serving(_app: FastAPI) -> AsyncIterator[None]:
        async with database, hub, background:
            yield

    app = FastAPI(
        title="testigo",
        lifespan=serving,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # the API tells its own: `web.api.openapi`
        redirect_slashes=False,
        middleware=[
            Middleware(Named, settings=chosen),
            Middleware(Counted, answers=answers),
            Middleware(Headers),
            Middleware(Failures),
            Middleware(Sized, settings=chosen),
        ],
    )
    app.state.settings = chosen
    app.state.environment = chosen.environment
    app.state.door = Door(database, chosen)
    app.state.blobs = BlobStore(blobs_directory(own_directory(place.url)))
    app.state.hub = hub
    app.state.background = background
    app.state.answers = answers
    app.state.rate = rate = Rate(chosen.requests_per_second, chosen.requests_burst)
    app.state.badge = Badge(chosen.signal_seconds)
    app.state.strangers = Strangers(rate)
    add_handlers(app)
    for each in (entrance, api, panel, signals, oidc):
        app.include_router(each.router)
    return app


def from_environment() -> FastAPI:
    """The application as environment and files describe it, for servers that make it themselves."""
    return create()
