"""Metrics for Prometheus: how the installation stands, read when it is asked, and what this process answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fastapi import Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from testigo.access.roles import Right
from testigo.authority.read.counts import states
from testigo.authority.read.pages import Count
from testigo.authority.read.queues import QueueView, oldest_ready, queues
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.store.sql import Statement
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes(tags=["health"])

_QUEUES_MAX = 200
"""Queues that metrics tell of, the first by name."""

_NOW = Statement("SELECT clock_timestamp() AS now")


class _Seen(NamedTuple):
    """How the installation stands, as far as it was counted."""

    states: Mapping[State, Count]
    queues: tuple[QueueView, ...]
    waited: Mapping[str, float]


class _Standing(Collector):
    """What was seen, as families of metrics."""

    def __init__(self, seen: _Seen, streams: int) -> None:
        self._seen = seen
        self._streams = streams

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The families."""
        bound = f"counted to {LIMITS.count_max} at most"
        jobs = GaugeMetricFamily("testigo_jobs", f"Jobs in each state, {bound}", labels=["state"])
        for state, count in self._seen.states.items():
            jobs.add_metric([str(state)], count.n)
        yield jobs
        queued = GaugeMetricFamily("testigo_queue_jobs", f"Jobs of each queue, {bound}", labels=["queue", "part"])
        paused = GaugeMetricFamily("testigo_queue_paused", "Whether the queue is paused", labels=["queue"])
        sessions = GaugeMetricFamily("testigo_queue_sessions", "Sessions that serve the queue", labels=["queue"])
        for queue in self._seen.queues:
            for part in ("ready", "delayed", "leased"):
                queued.add_metric([queue.name, part], getattr(queue, part).n)
            paused.add_metric([queue.name], queue.pause is not None)
            sessions.add_metric([queue.name], queue.sessions.n)
        yield from (queued, paused, sessions)
        oldest = GaugeMetricFamily(
            "testigo_queue_oldest_seconds",
            "Since when the oldest job could be claimed that nobody has",
            labels=["queue"],
        )
        for name, seconds in self._seen.waited.items():
            oldest.add_metric([name], seconds)
        yield oldest
        yield GaugeMetricFamily("testigo_streams_open", "Streams that this process has open", value=self._streams)


@routes.get(
    "/metrics",
    Right.READ,
    response_class=Response,
    **told(
        "get_metrics",
        "Read metrics for Prometheus",
        shows='testigo_jobs{state="ready"} 120.0',
        media=CONTENT_TYPE_LATEST.partition(";")[0],
    ),
)
async def metrics(request: Request, door: AtDoor) -> Response:
    """Tell how the installation stands, in Prometheus' text format: jobs by state and queue, ages, answers given.

    Counts stop at 10,000. What is of one process, answers and streams, is of the one that was asked.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Standing(await door.read(_see), request.app.state.hub.streams))
    text = generate_latest(registry) + generate_latest(request.app.state.answers.registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _see(c: Connection) -> _Seen:
    shown = queues(c, limit=_QUEUES_MAX).items
    oldest = oldest_ready(c, [queue.name for queue in shown])
    now = _NOW.rows(c)[0].now
    waited = {name: max(0.0, (now - at).total_seconds()) for name, at in oldest.items()}
    return _Seen(states(c), tuple(shown), waited)
