"""A job as the code that submitted it holds it: its id, and what can be asked about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from testigo.errors import JobCancelled, JobFailed, Unfulfilled
from testigo.rules.states import State

if TYPE_CHECKING:
    from testigo.authority.actions import JobId
    from testigo.authority.cancel import How
    from testigo.authority.read.ends import JobEnd
    from testigo.client import Client

__all__ = ["Job"]

R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A submitted job, whose handler returns an `R_co`. Two of one id are equal.

    Every question is a fresh look at the database: nothing is remembered here. A handler may pass a job
    on and name it as a parent, and nothing more: it waits for no other job (`InHandler`). Each method
    raises `NotFound` when the job has been pruned, and what `Database.run` raises.
    """

    __slots__ = ("_client", "_decode", "id")

    def __init__(self, job_id: JobId, client: Callable[[], Client], decode: Callable[[str], R_co]) -> None:
        self.id = job_id
        self._client = client
        self._decode = decode

    def result(self, timeout: float | None = None) -> R_co:
        """What the handler returned, once the job has succeeded; with a degraded success, its value.

        Waits for at most `timeout` seconds, without end if that is None. Raises `JobFailed`,
        `JobCancelled`, and `NotEnded` (a `TimeoutError`) when the job goes on.
        """
        return self._output(self._client().wait(self.id, timeout))

    async def result_async(self, timeout: float | None = None) -> R_co:  # noqa: ASYNC109
        """`result` for an asynchronous caller."""
        return self._output(await self._client().wait_async(self.id, timeout))

    def wait(self, timeout: float | None = None) -> State:
        """The state in which the job ended, once it has. Raises `NotEnded` after `timeout` seconds."""
        return self._client().wait(self.id, timeout).state

    async def wait_async(self, timeout: float | None = None) -> State:  # noqa: ASYNC109
        """`wait` for an asynchronous caller."""
        return (await self._client().wait_async(self.id, timeout)).state

    def state(self) -> State:
        """The state in which the job is now."""
        return self._client().look(self.id).state

    async def state_async(self) -> State:
        """`state` for an asynchronous caller."""
        return (await self._look_async()).state

    def limitations(self) -> tuple[str, ...]:
        """The limitations within which the job succeeded; none before it has, or if it did whole (spec A-13)."""
        return self._client().look(self.id).limitations

    async def limitations_async(self) -> tuple[str, ...]:
        """`limitations` for an asynchronous caller."""
        return (await self._look_async()).limitations

    def cancel(self, note: str = "") -> How:
        """Cancel the job, and say what that did: it is cancelled, its run is asked to stop, or it had ended.

        `note` says why, for people. The request is never lost (Promise 7).
        """
        return self._client().cancel(self.id, note)

    async def cancel_async(self, note: str = "") -> How:
        """`cancel` for an asynchronous caller."""
        client = self._client()
        return await client.apart(partial(client.cancel, self.id, note))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    async def _look_async(self) -> JobEnd:
        client = self._client()
        return await client.apart(partial(client.look, self.id))

    def _output(self, end: JobEnd) -> R_co:
        if end.state in (State.SUCCEEDED, State.SUCCEEDED_DEGRADED):
            return self._decode(end.output or "null")
        raise _unfulfilled(self.id, end)


def _unfulfilled(job_id: JobId, end: JobEnd) -> Unfulfilled:
    """Why there is no output, as the authority recorded it."""
    error = end.error or {}
    if end.state is State.PERMANENT_FAILURE:
        code, message = error.get("code", end.reason or ""), error.get("message", "")
        told = f"{code}: {message}" if message else code
        facts = {"job": job_id, "error_code": code, "error_message": message, "reason": end.reason}
        return JobFailed(f"The job {job_id} failed: {told}.", **facts)
    how = "was superseded" if end.state is State.SUPERSEDED else "was cancelled"
    by = f" by the job {end.successor}" if end.successor else ""
    return JobCancelled(f"The job {job_id} {how}{by}.", job=job_id, reason=end.reason, successor=end.successor)
