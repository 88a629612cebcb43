"""Submitting through a handler: arguments, options, batches, keys, and both colours."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testigo import App, Constant, Policy, State
from testigo.authority.read.details import by_key
from testigo.authority.read.details import job as read_job
from testigo.errors import Invalid, KeyConflict, NotFound, PayloadInvalid, PayloadTooLarge
from testigo.settings import LIMITS
from tests.app.handlers import Handlers, Receipt
from tests.world import World

NOON = datetime(2031, 5, 1, 12, tzinfo=UTC)


def test_arguments_go_by_name_or_by_place_as_in_a_call(app: App, handlers: Handlers) -> None:
    """The payload is the object of the arguments by name; what was left out is not in it."""
    for job in (
        handlers.order.submit(17, ["tea"]),
        handlers.order.submit(lines=["tea"], number=17),
        asyncio.run(handlers.order.submit_async(17, lines=["tea"])),
    ):
        view = app.database.run(read_job, job.id, documents=True)
        assert view.documents is not None
        assert view.documents.payload in ('{"number":17,"lines":["tea"]}', '{"lines":["tea"],"number":17}')
        assert (view.kind, view.queue, view.client) == ("order", "orders", "shop")
    assert handlers.order.new_job(number=17).payload == '{"number":17}'


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "payload.number"),
        ({"number": "17"}, "payload.number"),
        ({"number": 1.5}, "payload.number"),
        ({"number": True}, "payload.number"),
        ({"number": float("nan")}, "payload.number"),
        ({"number": 1, "lines": ("tea",)}, "payload.lines"),
        ({"number": 1, "lines": [None]}, "payload.lines[0]"),
        ({"number": 1, "colour": "red"}, "payload.colour"),
        ({"number": 1, "lines": ["\ud800"]}, "payload.lines[0]"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(
    handlers: Handlers, world: World, arguments: dict[str, Any], field: str
) -> None:
    """As strictly as the handler will read them: nothing is converted, nothing beyond it is taken (PAYLOAD_INVALID)."""
    with pytest.raises(PayloadInvalid) as refused:
        handlers.order.submit(**arguments)
    assert refused.value.field == field
    assert world.query("SELECT 1 FROM testigo.job") == []


def test_arguments_by_place_are_counted(handlers: Handlers) -> None:
    """One too many, or one that is given twice, is refused (PAYLOAD_INVALID)."""
    with pytest.raises(PayloadInvalid):
        handlers.order.submit(1, [], 3)  # type: ignore[call-arg]
    with pytest.raises(PayloadInvalid):
        handlers.order.submit(1, number=2)  # type: ignore[misc]


def test_arguments_that_are_too_large_are_refused(handlers: Handlers) -> None:
    """256 KiB is what is kept inline (PAYLOAD_TOO_LARGE)."""
    with pytest.raises(PayloadTooLarge):
        handlers.order.submit(1, ["x" * LIMITS.inline_bytes_max])


def test_options_stand_apart_and_add_up(app: App, handlers: Handlers) -> None:
    """What is not given stays as the decorator, or an earlier `options`, said; the handler itself keeps its own."""
    parent = handlers.order.submit(number=1)
    early = handlers.order.options(run_at=NOON, tags=["a", "b"], priority=3, queue="slow")
    child = early.options(
        finish_by=NOON + timedelta(hours=1), start_by=NOON, parents=[parent], policy=Policy.WAIT, priority=4
    ).options(attempts=9, timeout=7, backoff=Constant(2), crash_limit=4, delay_limit_seconds=60, cost_limit=2.5)
    view = app.database.run(read_job, child.submit(number=2).id)
    assert (view.queue, view.priority, view.tags) == ("slow", 4, ("a", "b"))
    assert (view.start_by, view.finish_by) == (NOON, NOON + timedelta(hours=1))
    assert (view.attempts, view.crash_limit, view.timeout_seconds) == (9, 4, 7.0)
    assert (view.terms.backoff, view.terms.delay_limit_seconds, view.terms.cost_limit) == (Constant(2), 60.0, 2.5)
    plain = app.database.run(read_job, handlers.order.submit(number=3).id)
    assert (plain.queue, plain.priority, plain.tags, plain.attempts) == ("orders", 0, (), 3)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"run_at": datetime(2031, 5, 1)}, "run_at"),  # noqa: DTZ001
        ({"start_by": NOON, "run_at": NOON + timedelta(seconds=1)}, "start_by"),
        ({"key": ""}, "key"),
        ({"priority": 2**31}, "priority"),
        ({"tags": "urgent"}, "tags"),
        ({"tags": [""]}, "tags[0]"),
        ({"parents": ["17"]}, "parents[0]"),
        ({"policy": "hope"}, "policy"),
        ({"queue": "a#b"}, "queue"),
        ({"attempts": 0}, "attempts"),
        ({"timeout": 0}, "timeout_seconds"),
        ({"backoff": 5}, "backoff"),
        ({"cost_limit": -1}, "cost_limit"),
    ],
)
def test_options_that_no_job_could_have_are_refused_at_once(
    handlers: Handlers, options: dict[str, Any], field: str
) -> None:
    """Where they are named, and not only where something is submitted with them (INVALID)."""
    with pytest.raises(Invalid) as refused:
        handlers.order.options(**options)
    assert refused.value.field == field


def test_a_key_makes_a_submission_idempotent_within_its_app(app: App, handlers: Handlers, database_url: str) -> None:
    """The same work is the same job, other work under the key is refused, another App has its own keys (spec D-01)."""
    keyed = handlers.order.options(key="order-17")
    job = keyed.submit(number=17)
    assert keyed.submit(number=17) == asyncio.run(keyed.submit_async(number=17)) == job
    with pytest.raises(KeyConflict) as refused:
        keyed.submit(number=18)
    assert refused.value.facts["job"] == job.id
    with pytest.raises(KeyConflict):
        asyncio.run(keyed.submit_async(number=18))
    assert app.database.run(by_key, "shop", "order", "order-17").id == job.id
    other = App("another shop", database_url)
    assert Handlers(other).order.options(key="order-17").submit(number=18) != job
    other.close()


def test_many_jobs_are_one_statement(app: App, handlers: Handlers, world: World) -> None:
    """All of them, in the order given, or none; in both colours."""
    rows = [{"number": n} for n in range(300)]
    jobs = handlers.order.submit_many(rows)
    assert len({job.id for job in jobs}) == 300
    assert len(world.query("SELECT DISTINCT action FROM testigo.receipt")) == 1
    more = asyncio.run(handlers.order.submit_many_async(rows[:3]))
    assert [job.state() for job in more] == [State.READY] * 3
    assert handlers.order.submit_many([]) == asyncio.run(handlers.order.submit_many_async(iter([]))) == []
    app.run_until_idle()
    assert [job.result(timeout=0) for job in more] == [Receipt(n, []) for n in range(3)]


def test_one_row_that_does_not_fit_refuses_them_all(handlers: Handlers, world: World) -> None:
    """It is named by its place (PAYLOAD_INVALID); a key, which names one job, is refused as well (INVALID)."""
    with pytest.raises(PayloadInvalid) as refused:
        handlers.order.submit_many([{"number": 1}, {"number": "2"}])
    assert refused.value.field == "rows[1].payload.number"
    with pytest.raises(Invalid) as keyed:
        handlers.order.options(key="k").submit_many([{"number": 1}])
    assert keyed.value.field == "key"
    with pytest.raises(Invalid):
        handlers.order.submit_many({"number": 1} for _ in range(LIMITS.batch_max + 1))
    assert world.query("SELECT 1 FROM testigo.job") == []


def test_jobs_of_several_kinds_are_submitted_together(app: App, handlers: Handlers) -> None:
    """A parent and its child in one statement; a key that names other work refuses its row alone (KEY_CONFLICT)."""
    parent = handlers.partly.new_job()
    child = handlers.order.options(parents=[parent.id]).new_job(number=2)
    assert app.submit([parent, child]) == [parent.id, child.id]
    app.run_until_idle()
    assert handlers.order.job(child.id).result(timeout=0).number == 2
    keyed = handlers.order.options(key="k")
    first = keyed.new_job(number=1)
    assert asyncio.run(app.submit_async([first])) == [first.id]
    taken, free = keyed.new_job(number=2), handlers.order.new_job(number=3)
    with pytest.raises(KeyConflict):
        app.submit([taken, free])
    assert handlers.order.job(free.id).state() is State.READY
    with pytest.raises(NotFound):
        handlers.order.job(taken.id).state()


def test_a_process_that_was_forked_off_connects_for_itself(database_url: str) -> None:
    """Parent and child both submit, and neither is disturbed by the other's connections or its end."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],  # of forking beside threads
        env={**os.environ, "TESTIGO_URL": database_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["child", "parent"], "")


FORKING = """
import os
from testigo import App, Context, Job

app = App("forking")

@app.job("work")
def work(ctx: Context, who: str) -> str:
    return who

def submit(who: str) -> Job[str]:
    return work.submit(who=who)

submit("before")
child = os.fork()
if not child:
    submit("child")
    app.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
job = submit("parent")
assert app.run_until_idle() == 3
print("child", job.result(timeout=0))
"""


def test_an_app_that_was_closed_opens_again(app: App, handlers: Handlers) -> None:
    """Closing it loses nothing, and may be repeated."""
    app.close()
    job = handlers.order.submit(number=1)
    app.close()
    app.close()
    assert asyncio.run(job.state_async()) is State.READY


def test_threads_that_come_at_once_share_what_is_opened(app: App, handlers: Handlers) -> None:
    """However many begin together, an App opens one pool of connections."""
    together = threading.Barrier(16)

    def begin(number: int) -> int:
        together.wait()
        handlers.order.submit(number=number)
        return id(app.database)

    with ThreadPoolExecutor(16) as threads:
        assert len(set(threads.map(begin, range(16)))) == 1


def test_an_installation_is_told_of_once_and_without_its_password(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line at INFO says where an App's jobs go, and who said so."""
    caplog.set_level("INFO", logger="testigo.client")
    app = App("told", database_url.replace("postgres@/", "postgres:secret@/"))
    order = Handlers(app).order
    for number in range(2):
        order.submit(number=number)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "testigo.client"]
    assert line.startswith("told uses postgresql://postgres:***@/")
    assert line.endswith("schema testigo, by the argument")
    app.close()
