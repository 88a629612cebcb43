"""What a keeper counts, for Prometheus: in a registry of its own, served to this machine alone, and only if asked."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from testigo.errors import Invalid
from testigo.worker.runs import Run

__all__ = ["Metrics"]

_log = logging.getLogger("testigo.worker")

_BATCHES = (1, 3, 10, 30, 100, 200, 400)


class Metrics:
    """The counters of one keeper. Only its main thread counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._ended = Counter(
            "testigo_runs_ended", "Runs whose end was answered", ["kind", "outcome"], registry=self.registry
        )
        self._claims = Counter("testigo_claims", "Claims that took something", registry=self.registry)
        self._claim_rows = Histogram("testigo_claim_jobs", "Jobs of a claim", buckets=_BATCHES, registry=self.registry)
        self._claim_seconds = Histogram("testigo_claim_seconds", "Seconds of a claim", registry=self.registry)
        self._settles = Counter("testigo_settles", "Settles that were answered", registry=self.registry)
        self._settle_rows = Histogram(
            "testigo_settle_runs", "Runs of a settle", buckets=_BATCHES, registry=self.registry
        )
        self._settle_seconds = Histogram("testigo_settle_seconds", "Seconds of a settle", registry=self.registry)
        self._deaths = Counter(
            "testigo_runner_deaths", "Runners that ended unasked, or were killed", registry=self.registry
        )

    def watch(
        self, *, in_flight: Callable[[], float], beat_age_seconds: Callable[[], float], hears: Callable[[], float]
    ) -> None:
        """Show what is read when it is asked for."""
        runs = Gauge("testigo_runs_in_flight", "Runs that are claimed and not yet answered", registry=self.registry)
        runs.set_function(in_flight)
        age = Gauge("testigo_beat_age_seconds", "Seconds since the last good renewal was sent", registry=self.registry)
        age.set_function(beat_age_seconds)
        heard = Gauge(
            "testigo_hears_wake_ups", "1 while wake-ups arrive, 0 while only polling finds work", registry=self.registry
        )
        heard.set_function(hears)

    def serve(self, port: int) -> None:
        """Serve them on the loopback address, from a thread of its own; at port 0 on any that is free."""
        try:
            server, _ = start_http_server(port, addr="127.0.0.1", registry=self.registry)
        except (OSError, OverflowError) as error:
            raise Invalid(f"the port cannot be served: {error}", field="metrics_port") from error
        _log.info("metrics on 127.0.0.1:%d", server.server_port)

    def claimed(self, jobs: int, seconds: float) -> None:
        """A claim took so many jobs."""
        self._claims.inc()
        self._claim_rows.observe(jobs)
        self._claim_seconds.observe(seconds)

    def settled(self, runs: Sequence[Run], seconds: float) -> None:
        """The settle of these runs was answered."""
        self._settles.inc()
        self._settle_rows.observe(len(runs))
        self._settle_seconds.observe(seconds)
        tally = Tally([(run.lease.kind, type(run.end.outcome)) for run in runs if run.end is not None])
        for (kind, outcome), count in tally.items():
            self._ended.labels(kind, outcome.__name__.lower()).inc(count)

    def died(self) -> None:
        """A runner ended unasked, or was killed."""
        self._deaths.inc()
