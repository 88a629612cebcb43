"""What can be asked of a submitted job, in both colours."""

from __future__ import annotations

import asyncio
import threading

import pytest

from testigo import App, JobCancelled, JobFailed, NotEnded, State
from testigo.authority.actions import Action
from testigo.authority.cancel import How
from testigo.authority.redact import Part, redact
from testigo.authority.reprocess import reprocess
from testigo.errors import Invalid, NotFound, PayloadInvalid
from testigo.rules.outcomes import Succeed
from tests.app.handlers import Handlers, Receipt
from tests.world import World


def test_the_result_is_what_the_handler_returned(app: App, handlers: Handlers) -> None:
    """It comes back in the handler's own type, in both colours, and so does the final state."""
    job = handlers.order.submit(number=17, lines=["tea"])
    assert job.state() is State.READY
    assert app.run_until_idle() == 1
    assert job.result(timeout=0) == Receipt(17, ["tea"])
    assert asyncio.run(job.result_async()) == Receipt(17, ["tea"])
    assert job.wait() is asyncio.run(job.wait_async()) is State.SUCCEEDED
    assert asyncio.run(job.state_async()) is State.SUCCEEDED


def test_a_degraded_result_is_its_value_and_has_limitations(app: App, handlers: Handlers) -> None:
    """Whoever asks learns within which limitations the value stands (spec A-13)."""
    job = handlers.partly.submit()
    assert job.limitations() == ()
    app.run_until_idle()
    assert job.result(timeout=0) == 7
    assert job.limitations() == asyncio.run(job.limitations_async()) == ("the last line is missing",)
    assert job.state() is State.SUCCEEDED_DEGRADED


def test_a_failure_is_raised_with_what_was_recorded(app: App, handlers: Handlers) -> None:
    """The job's id, and the code and message that the handler gave (JOB_FAILED)."""
    job = handlers.never.submit()
    app.run_until_idle()
    with pytest.raises(JobFailed, match="no-stock: there is nothing left") as raised:
        job.result(timeout=0)
    failed = raised.value
    assert (failed.code, failed.job_id) == ("JOB_FAILED", job.id)
    assert (failed.error_code, failed.error_message) == ("no-stock", "there is nothing left")
    assert job.wait(timeout=0) is State.PERMANENT_FAILURE


def test_a_job_that_was_given_up_unstarted_says_why(app: App, handlers: Handlers, world: World) -> None:
    """Where no run failed, the reason of the end stands in the place of a code (JOB_FAILED)."""
    job = handlers.order.submit(number=1)
    child = handlers.order.options(parents=[handlers.never.submit(), job]).submit(number=2)
    app.run_until_idle()
    with pytest.raises(JobFailed) as raised:
        child.result(timeout=0)
    assert raised.value.error_code == raised.value.facts["reason"] == world.job(child.id).reason
    assert raised.value.error_message == ""


def test_a_cancelled_job_has_no_result(handlers: Handlers) -> None:
    """What a cancel did is its answer; the job says so for ever after (JOB_CANCELLED, Promise 7)."""
    job = handlers.order.submit(number=1)
    assert job.cancel("not wanted any more") is How.CANCELLED
    assert job.cancel() is asyncio.run(job.cancel_async()) is How.ENDED
    with pytest.raises(JobCancelled) as raised:
        job.result(timeout=0)
    assert raised.value.job_id == job.id
    assert job.wait(timeout=0) is State.CANCELLED


def test_a_superseded_job_names_its_successor(app: App, handlers: Handlers) -> None:
    """Another job took its place, and has the result (JOB_CANCELLED)."""
    job = handlers.stuck.submit()
    app.run_until_idle()
    assert job.state() is State.BLOCKED_BY_QUALITY
    successor = app.database.run(reprocess, job.id, action=Action("tester")).job_id
    with pytest.raises(JobCancelled, match=successor) as raised:
        job.result(timeout=0)
    assert raised.value.facts["successor"] == successor


def test_waiting_ends_at_the_timeout(handlers: Handlers) -> None:
    """Nothing happens to the job, and `TimeoutError` catches it as well (NOT_ENDED)."""
    job = handlers.order.submit(number=1)
    for timeout in (0, 0.02):
        with pytest.raises(TimeoutError) as raised:
            job.result(timeout=timeout)
        assert isinstance(raised.value, NotEnded)
        with pytest.raises(NotEnded):
            asyncio.run(job.wait_async(timeout=timeout))
    assert job.state() is State.READY
    with pytest.raises(Invalid) as refused:
        job.wait(timeout=-1)
    assert refused.value.field == "timeout"


def test_whoever_waits_learns_of_an_end_that_comes_later(app: App, handlers: Handlers) -> None:
    """Both colours wait at once, and neither keeps the other from it."""
    job = handlers.order.submit(number=3)
    waiting = threading.Barrier(3)
    found: list[Receipt] = []

    async def wait() -> Receipt:
        waiting.wait()
        return await job.result_async(timeout=90)

    def wait_blocking() -> None:
        waiting.wait()
        found.append(job.result(timeout=90))

    threads = [
        threading.Thread(target=wait_blocking),
        threading.Thread(target=lambda: found.append(asyncio.run(wait()))),
    ]
    for thread in threads:
        thread.start()
    waiting.wait()
    app.run_until_idle()
    for thread in threads:
        thread.join(timeout=90)
    assert found == [Receipt(3, []), Receipt(3, [])]


def test_many_tasks_wait_on_few_connections(app: App, handlers: Handlers) -> None:
    """A hundred tasks that wait need no more connections than the App has, and all learn of their jobs' ends."""
    jobs = handlers.order.submit_many([{"number": n} for n in range(100)])

    async def wait_for_all() -> list[Receipt]:
        running = asyncio.get_running_loop().run_in_executor(None, app.run_until_idle)
        results = await asyncio.gather(*(job.result_async(timeout=60) for job in jobs))
        await running
        return list(results)

    assert asyncio.run(wait_for_all()) == [Receipt(n, []) for n in range(100)]


def test_a_job_is_found_again_by_its_id(app: App, handlers: Handlers) -> None:
    """Whoever kept the id has the same job in hand; one that is not there is told when it is looked at."""
    job = handlers.order.submit(number=5)
    again = handlers.order.job(job.id)
    assert again == job
    assert len({job, again}) == 1
    assert repr(again) == f"Job('{job.id}')"
    app.run_until_idle()
    assert again.result(timeout=0).number == 5
    with pytest.raises(NotFound):
        handlers.order.job("00000000-0000-7000-8000-000000000000").state()
    with pytest.raises(Invalid):
        handlers.order.job("17")


def test_an_output_that_is_not_of_the_handler_s_type_is_refused(handlers: Handlers, world: World) -> None:
    """Another release of the code, or a redaction, may have left another value (PAYLOAD_INVALID)."""
    job = handlers.order.submit(number=1)
    worker = world.worker(queues=["orders"], kinds=["order"])
    worker.settle((worker.take(), Succeed()))
    with pytest.raises(PayloadInvalid):
        job.result(timeout=0)
    redacted = handlers.order.submit(number=2)
    worker.succeed(worker.take())
    world.db.run(redact, redacted.id, [Part.OUTPUT], note="asked for", action=world.action())
    with pytest.raises(PayloadInvalid):
        redacted.result(timeout=0)
