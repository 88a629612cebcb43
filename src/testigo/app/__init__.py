"""The App: where handlers are named, and jobs of them submitted.

    app = App("media")

    @app.job("media.transcode", queue="media", attempts=5, timeout=600)
    async def transcode(ctx: AsyncContext, path: str, height: int = 720) -> Transcoded: ...

    job = transcode.submit(path="a.mp4")
    job = transcode.options(key="order-17").submit(path="a.mp4")

What describes a job's submission stands apart from the handler's own arguments, so that its signature types
`submit` for whoever checks types. Importing this opens nothing, and loads no driver of a database: a runner
loads the user's module, and has none.
"""

from testigo.app.application import App
from testigo.app.bound import AsyncHandler, Bound, Handler
from testigo.app.registering import Registering

__all__ = ["App", "AsyncHandler", "Bound", "Handler", "Registering"]
