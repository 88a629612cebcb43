"""What a context says of its run changes only by what its keeper told, and by time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from testigo.rules.outcomes import Fail, Yield
from testigo.worker.context import AsyncContext, Context, current_port
from testigo.worker.endings import Yielded
from testigo.worker.execute import run_async, run_sync
from testigo.worker.handlers import HandlerSpec
from testigo.worker.ports import RunPort
from testigo.worker.protocol import Run

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
TRACE = f"00-{TRACE_ID:032x}-b7ad6b7169203331-01"


class Silence:
    """A line on which nobody answers."""

    is_draining = False

    def call(self, *_: Any) -> Future[Any]:
        """Never answered."""
        return Future()

    def note(self, note: list[Any]) -> None:
        """Heard by nobody."""


def run_of(**known: Any) -> Run:
    """A run like most."""
    return Run(1, "a", "default", "job", 1, 0, 0, 120.0, None, "{}", None, None)._replace(**known)


def test_a_run_should_stop_while_it_is_stopped_or_its_worker_drains() -> None:
    """A drain is no cancellation: what the run still does counts."""
    line = Silence()
    port = RunPort(line, 1)
    context = Context(run_of(), port)
    assert (context.cancelled, context.should_stop, context.why_stopped) == (False, False, None)
    line.is_draining = True
    assert (context.cancelled, context.should_stop, context.why_stopped) == (False, True, None)
    line.is_draining = False
    port.stop("timeout")
    assert (context.cancelled, context.should_stop, context.why_stopped) == (True, True, "timeout")


def test_the_seconds_left_never_fall_below_zero() -> None:
    """They are counted on a monotonic clock."""
    port = RunPort(Silence(), 1)
    assert 0 < Context(run_of(), port).seconds_left <= 120
    assert Context(run_of(timeout_seconds=0.0), port).seconds_left == 0


def test_the_port_of_a_run_is_known_inside_it_only() -> None:
    """In its tasks and copied contexts, and nowhere after it."""
    seen: list[object] = []

    async def on_loop(ctx: AsyncContext) -> None:
        seen.append(current_port())
        seen.append(await asyncio.create_task(asyncio.to_thread(current_port)))

    def in_thread(ctx: Context) -> None:
        seen.append(current_port())

    port = RunPort(Silence(), 1)

    async def both() -> None:
        await run_async(HandlerSpec("a", "default", on_loop), run_of(), port)
        assert current_port() is None
        run_sync(HandlerSpec("a", "default", in_thread), run_of(), port)
        assert current_port() is None

    asyncio.run(both())
    assert seen == [port] * 3


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Where spans of this process go; OpenTelemetry takes one provider for the life of a process."""
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


def span_of_run(exporter: InMemorySpanExporter, spec: HandlerSpec, **known: Any) -> tuple[ReadableSpan, object]:
    """The one span of a run, and its outcome."""
    exporter.clear()
    end = asyncio.run(run_async(spec, run_of(**known), RunPort(Silence(), 1)))
    (span,) = exporter.get_finished_spans()
    return span, end.outcome


def test_a_run_is_a_span_of_the_trace_that_submitted_it(exporter: InMemorySpanExporter) -> None:
    """And what the handler does is inside it."""
    inside: list[int] = []

    async def handler(ctx: AsyncContext) -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)

    span, _ = span_of_run(exporter, HandlerSpec("a", "default", handler), trace=TRACE)
    assert span.name == "run a"
    assert span.attributes is not None
    assert span.attributes["testigo.job_id"] == "job"
    assert span.parent is not None
    assert span.parent.trace_id == TRACE_ID
    assert inside == [TRACE_ID]


@pytest.mark.parametrize(
    ("raised", "outcome", "status"),
    [(ValueError("no"), Fail, trace.StatusCode.ERROR), (Yielded(1), Yield, trace.StatusCode.UNSET)],
)
def test_a_span_fails_with_its_run(
    exporter: InMemorySpanExporter, raised: Exception, outcome: type, status: trace.StatusCode
) -> None:
    """A run that yields has not failed."""

    async def handler(ctx: AsyncContext) -> None:
        raise raised

    span, ended = span_of_run(exporter, HandlerSpec("a", "default", handler), trace="not a trace")
    assert isinstance(ended, outcome)
    assert span.parent is None
    assert span.status.status_code is status
