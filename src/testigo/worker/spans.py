"""A run as a span of the trace that submitted it, for those who use OpenTelemetry.

Where neither the job carries a trace nor the application has loaded OpenTelemetry, a run costs nothing
here: without its API loaded, nobody in this process can have asked for spans.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from testigo.worker.endings import Blocked, Yielded
from testigo.worker.protocol import Run

__all__ = ["span_of"]

_NO_SPAN = nullcontext()


def span_of(run: Run) -> AbstractContextManager[None]:
    """The span "run <kind>" under the trace that the job carries; nothing where OpenTelemetry is not in use."""
    if run.trace is None and "opentelemetry.trace" not in sys.modules:
        return _NO_SPAN
    try:
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        return _NO_SPAN
    return _span(run)


@contextmanager
def _span(run: Run) -> Iterator[None]:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract({"traceparent": run.trace}) if run.trace else None
    with trace.get_tracer("testigo").start_as_current_span(
        f"run {run.kind}",
        context=parent,
        kind=trace.SpanKind.CONSUMER,
        attributes={"testigo.job_id": run.job_id, "testigo.queue": run.queue, "testigo.epoch": run.epoch},
        record_exception=False,  # its text may raise; the job's own record has it, made fit
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except (Blocked, Yielded):
            raise
        except BaseException as error:
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise
