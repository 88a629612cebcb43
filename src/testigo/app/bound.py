"""A kind of job with options: what jobs are submitted from, and what a decorated handler is."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from testigo.authority.actions import JobId
from testigo.authority.submissions import NewJob, check
from testigo.errors import Invalid
from testigo.jobs import Job
from testigo.rules import fields
from testigo.rules.decide import Policy
from testigo.rules.retries import Backoff
from testigo.worker.context import AsyncContext, Context
from testigo.worker.endings import Degraded
from testigo.worker.handlers import HandlerSpec

if TYPE_CHECKING:
    from datetime import datetime

    from testigo.app.application import App

__all__ = ["AsyncHandler", "Bound", "Handler", "checked", "given"]

P = ParamSpec("P")
A_co = TypeVar("A_co", covariant=True)
R = TypeVar("R")


class Bound(Generic[P, A_co]):
    """A kind of job with what its submissions say besides the handler's arguments.

    Inside a handler `submit` goes through the worker and is committed at once, whatever becomes of the run
    (`ctx.submit` is committed with its success). Arguments are checked before anything is sent, as strictly as
    the handler will read them (`PayloadInvalid`, `PayloadTooLarge`). A key that names the same work
    already gives the job that was submitted first; one that names other work raises `KeyConflict`. The
    rest is raised as by `authority.submit` and `Database.run`, and with a `connection` as by `run_within`.
    """

    def __init__(self, app: App, spec: HandlerSpec, given: Mapping[str, Any], connection: object = None) -> None:
        self._app = app
        self._spec = spec
        self._given = given
        self._connection = connection

    @property
    def kind(self) -> str:
        """The kind."""
        return self._spec.kind

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind!r})"

    def options(
        self,
        *,
        key: str | None = None,
        run_at: datetime | None = None,
        start_by: datetime | None = None,
        finish_by: datetime | None = None,
        priority: int | None = None,
        tags: Sequence[str] | None = None,
        parents: Sequence[Job[Any] | str] | None = None,
        policy: Policy | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        crash_limit: int | None = None,
        delay_limit_seconds: float | None = None,
        cost_limit: float | None = None,
        connection: object = None,
    ) -> Bound[P, A_co]:
        """The same kind with these options; what is None stays as it is.

        `key` makes a submission idempotent within App and kind. `run_at` is the earliest start, `start_by`
        the latest, `finish_by` the end of all tries: times with a zone. The job waits for its `parents`, and
        `policy` says what becomes of it when one of them can never succeed. With a `connection` of the
        caller's own, of any kind that `run_within` takes, the job exists if and only if its transaction
        commits. The others are as in `App.job`. Raises `Invalid`.
        """
        more = given(
            key=key,
            run_at=run_at,
            start_by=start_by,
            finish_by=finish_by,
            priority=priority,
            tags=None if tags is None else _several(tags, "tags"),
            parents=None if parents is None else tuple(_id_of(each) for each in _several(parents, "parents")),
            policy=policy,
            queue=queue,
            attempts=attempts,
            timeout_seconds=timeout,
            backoff=backoff,
            crash_limit=crash_limit,
            delay_limit_seconds=delay_limit_seconds,
            cost_limit=cost_limit,
        )
        merged = {**self._given, **more}
        checked(NewJob(self._spec.kind, **merged))
        return Bound(self._app, self._spec, merged, self._connection if connection is None else connection)

    def submit(self: Bound[P, R | Degraded[R]], *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Submit one job. When this returns, the work cannot be lost (spec D-02)."""
        (job_id,) = self._app.submit([self._asked(args, kwargs)], connection=self._connection)
        return self.job(job_id)

    async def submit_async(self: Bound[P, R | Degraded[R]], *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`submit` for an asynchronous caller; a `connection` is then asynchronous as well."""
        (job_id,) = await self._app.submit_async([self._asked(args, kwargs)], connection=self._connection)
        return self.job(job_id)

    def submit_many(self: Bound[P, R | Degraded[R]], rows: Iterable[Mapping[str, Any]]) -> list[Job[R]]:
        """Submit a job for each row of arguments by name: all of them, in one statement, or none.

        At most 10,000. Raises `Invalid` naming the row (`rows[3]`), and for options with a key, which names
        one job.
        """
        jobs = self._new_jobs(rows)
        return [self.job(job_id) for job_id in self._app.submit(jobs, connection=self._connection)] if jobs else []

    async def submit_many_async(self: Bound[P, R | Degraded[R]], rows: Iterable[Mapping[str, Any]]) -> list[Job[R]]:
        """`submit_many` for an asynchronous caller."""
        jobs = self._new_jobs(rows)
        ids = await self._app.submit_async(jobs, connection=self._connection) if jobs else []
        return [self.job(job_id) for job_id in ids]

    def new_job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """The job with these arguments, not submitted yet: for `App.submit` and `ctx.submit`."""
        if self._connection is not None:
            raise Invalid("A job that is made for later is bound to no connection.", field="connection")
        return self._asked(args, kwargs)

    def job(self: Bound[P, R | Degraded[R]], job_id: str) -> Job[R]:
        """A job of this kind by its id, which may have been kept anywhere meanwhile. It is not looked for."""
        fields.must_be_id(job_id, field="job")
        return Job(JobId(job_id), self._app.client, self._spec.decode_output)

    def _asked(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        return self._made(self._spec.bind(*args, **kwargs), _traceparent())

    def _new_jobs(self, rows: Iterable[Mapping[str, Any]]) -> list[NewJob]:
        if "key" in self._given:
            raise Invalid("A key names one job.", field="key", remedy="Submit each job with its own key.")
        trace = _traceparent()
        jobs = []
        for at, row in enumerate(rows):
            try:
                jobs.append(self._made(row, trace))
            except Invalid as error:
                error.field = f"rows[{at}].{error.field}"
                raise
        return jobs

    def _made(self, arguments: Mapping[str, Any], trace: str | None) -> NewJob:
        payload = self._spec.encode(arguments)
        return NewJob(self._spec.kind, payload, client=self._app.name, trace=trace, **self._given)


class Handler(Bound[P, A_co]):
    """A handler that runs in a thread. Called with a context of one's own, it is the plain function."""

    def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> A_co:
        """What the function returns."""
        returned: A_co = self._spec.function(ctx, *args, **kwargs)
        return returned


class AsyncHandler(Bound[P, A_co]):
    """A handler that is a coroutine function. Called with a context of one's own, it is that function."""

    def __call__(self, ctx: AsyncContext, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, A_co]:
        """The function's coroutine."""
        coroutine: Coroutine[Any, Any, A_co] = self._spec.function(ctx, *args, **kwargs)
        return coroutine


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: of the others a job takes the default."""
    return {name: value for name, value in options.items() if value is not None}


def checked(job: NewJob) -> None:
    """Refuse options that no job could have, before there is one."""
    try:
        check([job])
    except Invalid as error:
        error.field = str(error.field).removeprefix("jobs[0].")
        raise


def _several(values: Sequence[Any], field: str) -> tuple[Any, ...]:
    if isinstance(values, str):
        raise Invalid("A sequence is needed, not one text.", field=field)
    return tuple(values)


def _id_of(parent: Job[Any] | str) -> JobId:
    return parent.id if isinstance(parent, Job) else JobId(parent)


def _traceparent() -> str | None:
    """The W3C traceparent of the span in which a job is submitted; none where nobody has loaded OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")
