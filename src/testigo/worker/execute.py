"""One run, from its payload to its end: the same in a runner and in a process that runs handlers itself.

Whatever a handler does short of ending its process becomes an end that can be recorded: a value that
cannot be written, an exception whose `str` raises, a SystemExit (field cases R45, R46).
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from testigo.errors import Error, Invalid
from testigo.rules.discreet import discreet, discreet_end
from testigo.rules.documents import Document
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, Release, Succeed, Yield
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.worker import values
from testigo.worker.context import AsyncContext, Context, Port, RunContext, port_of_run
from testigo.worker.endings import Blocked, Degraded, Permanent, RetryAfter, Yielded
from testigo.worker.handlers import HandlerSpec
from testigo.worker.protocol import Run
from testigo.worker.spans import span_of
from testigo.worker.wire import NULL_END, End

__all__ = ["detail_of", "run_async", "run_sync"]

_FRAMES_TOLD = 40


async def run_async(spec: HandlerSpec, run: Run, port: Port) -> End:
    """The end of a run whose handler is a coroutine.

    It never raises: a cancellation ends the run and goes no further. A run that was told to stop
    before it began does not begin.
    """
    with _Judge(spec, run, port) as judge, span_of(run):
        context = AsyncContext(run, port)
        judge.returned(context, await spec.function(context, **judge.arguments()))
    return judge.end


def run_sync(spec: HandlerSpec, run: Run, port: Port) -> End:
    """The end of a run whose handler is a plain function, run in the calling thread; otherwise as `run_async`."""
    with _Judge(spec, run, port) as judge, span_of(run):
        context = Context(run, port)
        judge.returned(context, spec.function(context, **judge.arguments()))
    return judge.end


class _ToldToStop(BaseException):
    """The run was told to stop before its handler was called."""


class _Judge:
    """What a handler returns or raises, as the end of its run; while it judges, the run is the current one."""

    __slots__ = ("_port", "_run", "_spec", "_token", "end")

    def __init__(self, spec: HandlerSpec, run: Run, port: Port) -> None:
        self._spec = spec
        self._run = run
        self._port = port
        self.end = NULL_END

    def __enter__(self) -> _Judge:
        self._token = port_of_run.set(self._port)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        port_of_run.reset(self._token)
        if error is not None:
            self.end = End(self._of_error(error))
        return True

    def arguments(self) -> dict[str, Any]:
        """What the handler is called with."""
        if self._port.why_stopped is not None:
            raise _ToldToStop
        try:
            return self._spec.decode(self._run.payload)
        except Invalid as error:
            raise Permanent(error.code, _unlabelled(error)) from None

    def returned(self, context: RunContext, value: object) -> None:
        """Take the handler's value for the end of its run."""
        if isinstance(value, Degraded):
            self.end = End(Degrade(self._output(value.value), value.limitations), context.children)
            return
        output = self._output(value)
        if output is not values.NULL or context.children:
            self.end = End(Succeed(output), context.children)

    def _output(self, value: object) -> Document:
        """No other try would make a fit output of the same work, so there is none."""
        try:
            return self._spec.encode_output(value)
        except Invalid as error:
            raise Permanent(error.code, _unlabelled(error)) from None

    def _of_error(self, error: BaseException) -> Outcome:
        try:
            return self._of_ending(error) or self._of_stop(error) or self._of_failure(error)
        except BaseException as second:  # a checkpoint that cannot be written, in whatever way it fails
            return self._of_failure(second, permanent=isinstance(second, Invalid))

    def _of_ending(self, error: BaseException) -> Outcome | None:
        match error:
            case Yielded():
                return Yield(values.write(error.checkpoint, field="checkpoint"))
            case Blocked():
                kept = None if error.checkpoint is None else values.write(error.checkpoint, field="checkpoint")
                return Block(discreet(error.reason), discreet(error.needs), kept)
            case Permanent():
                return Fail(error.code, discreet(error.message), detail_of(error), permanent=True)
            case RetryAfter():
                return Fail("RETRY_AFTER", discreet(error.message), detail_of(error), wait_seconds=error.seconds)
        return None

    def _of_stop(self, error: BaseException) -> Outcome | None:
        why = self._port.why_stopped
        if why is None:
            return None
        if why == "drained":
            return Release(why)
        detail = "" if isinstance(error, _ToldToStop) else detail_of(error)
        return Fail(why.upper(), f"The run was told to stop: {why}.", detail)

    def _of_failure(self, error: BaseException, *, permanent: bool = False) -> Outcome:
        """Any exception. Its `str` may raise anything, and its class may lie about its name."""
        code, message = (error.code, error.message) if isinstance(error, Error) else (_name(error), error)
        permanent = permanent or isinstance(error, self._spec.permanent_on)
        return Fail(code, discreet(message), detail_of(error), permanent)


def _unlabelled(error: Error) -> str:
    """All that a refusal says but its code, which a failure has beside its message."""
    return str(error).removeprefix(f"{error.code}: ")


def _name(error: BaseException) -> str:
    """The name that the class statement gave, with its module, as one line."""
    module, name = (type.__dict__[part].__get__(type(error)) for part in ("__module__", "__qualname__"))
    words = str(name) if module == "builtins" else f"{module}.{name}"
    return "".join(tidy(words, bytes_max=LIMITS.name_chars_max).split())


def detail_of(error: BaseException) -> str:
    """The traceback from the handler's own frames on, without secrets; its last lines, if it is long, for they tell."""
    try:
        frames = error.__traceback__ and error.__traceback__.tb_next
        text = "".join(traceback.format_exception(type(error), error, frames, limit=-_FRAMES_TOLD))
        return discreet_end(text)
    except BaseException as second:  # whatever a foreign __str__ or __getattr__ raises, the failure is recorded
        return f"No traceback can be written: {_name(second)}."
