"""The trace in which a job is submitted goes with it (W3C trace context)."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanContext

from testigo import App
from testigo.authority.submissions import NewJob
from tests.app.handlers import Handlers
from tests.world import World


def test_a_submission_carries_the_current_span(handlers: Handlers, world: World) -> None:
    """One job or many; and where there is no span, there is no trace."""
    assert handlers.order.new_job(number=0).trace is None
    with TracerProvider().get_tracer("tests").start_as_current_span("request") as span:
        job = handlers.order.submit(number=1)
        more = handlers.order.submit_many([{"number": 2}, {"number": 3}])
        expected = _traceparent(span.get_span_context())
    assert {world.job(each.id).trace for each in (job, *more)} == {expected}


def test_the_handler_s_span_is_of_the_same_trace(app: App, handlers: Handlers) -> None:
    """What a handler submits belongs to the trace that its own job was submitted in."""
    from testigo import Context

    @app.job("traced")
    def traced(ctx: Context) -> str | None:
        made: NewJob = handlers.order.new_job(number=1)
        return made.trace

    with TracerProvider().get_tracer("tests").start_as_current_span("request") as span:
        job = traced.submit()
        trace_id = format(span.get_span_context().trace_id, "032x")
    app.run_until_idle()
    found = job.result(timeout=0)
    assert found is not None
    assert found.split("-")[1] == trace_id


def test_nothing_of_opentelemetry_is_loaded_for_those_who_do_not_use_it() -> None:
    """A submission costs them nothing for it."""
    asked = "import sys; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{MAKING}\n{asked}"], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


MAKING = """
from testigo import App, Context

app = App("shop")

@app.job("work")
def work(ctx: Context) -> None: ...

work.new_job()
"""


def _traceparent(span: SpanContext) -> str:
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
