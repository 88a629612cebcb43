"""What a worker is started with."""

from __future__ import annotations

from dataclasses import dataclass

from testigo.settings import RETENTION, SESSIONS, WORKER, Retention, Worker

__all__ = ["Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is started with.

    `app` names the application as `module:app`. Without `queues` those of its kinds are served, without
    an `agent` the worker has a name of its own; one that is given is exclusive, and `replace` takes it
    from whoever has it. The other members are the installation's URL and schema, as the command line
    gave them.
    """

    app: str
    url: str | None = None
    schema: str | None = None
    queues: tuple[str, ...] = ()
    runners: int = 1
    agent: str | None = None
    replace: bool = False
    term_seconds: float = SESSIONS.term_seconds
    reload: bool = False
    metrics_port: int | None = None
    options: Worker = WORKER
    retention: Retention = RETENTION
