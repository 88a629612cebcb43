"""A runner runs what it is sent, tells what came of it, and stops, drains and rests as it is told (P-20, P-22)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testigo.errors import EpochStale
from testigo.settings import WORKER
from testigo.worker.protocol import encode_frame
from testigo.worker.wire import end_from_wire, error_to_wire, new_job_from_wire
from tests.worker.scripted_keeper import ScriptedKeeper

HANDLERS = """
import asyncio
import logging
import threading
import time
from testigo.worker.context import current_port

@app.job("double")
async def double(ctx: AsyncContext, n: int, by: int = 2) -> int:
    return n * by

@app.job("echo")
async def echo(ctx: AsyncContext, text: str) -> str:
    return text

@app.job("treble", queue="slow", isolation="process")
def treble(ctx: Context, n: int) -> int:
    return n * 3

@app.job("known")
async def known(ctx: AsyncContext) -> dict[str, object]:
    return {
        "job_id": ctx.job_id, "kind": ctx.kind, "queue": ctx.queue, "epoch": ctx.epoch, "failures": ctx.failures,
        "losses": ctx.losses, "finish_by": str(ctx.finish_by), "timeout_seconds": ctx.timeout_seconds,
        "left": ctx.seconds_left <= ctx.timeout_seconds, "cancelled": ctx.cancelled, "stop": ctx.should_stop,
        "why": ctx.why_stopped,
    }

@app.job("saves")
async def saves(ctx: AsyncContext) -> list[int]:
    before = ctx.load(list[int]) or []
    await ctx.save([*before, 1])
    await ctx.save([*before, 1, 2])
    return ctx.load(list[int]) or []

@app.job("saves-in-thread")
def saves_in_thread(ctx: Context) -> list[int]:
    ctx.save([7])
    return ctx.load(list[int]) or []

@app.job("child")
async def child(ctx: AsyncContext, n: int) -> None: ...

@app.job("with-children")
async def with_children(ctx: AsyncContext, fails: bool = False) -> str:
    job = await ctx.submit(child, n=1)
    await ctx.submit(child.options(key="two"), 2)
    if fails:
        raise ValueError("no children")
    return job.id

@app.job("with-children-in-thread")
def with_children_in_thread(ctx: Context) -> Degraded[None]:
    ctx.submit(child, n=1)
    return Degraded(None, limitations=["no sound"])

@app.job("submits-at-once")
async def submits_at_once(ctx: AsyncContext) -> list[str]:
    port = current_port()
    return [str(how) for _, how in await asyncio.wrap_future(port.submit([child.new_job(n=5)]))]

@app.job("waits")
async def waits(ctx: AsyncContext) -> None:
    await ctx.log("waiting")
    await asyncio.Event().wait()

@app.job("waits-in-thread")
def waits_in_thread(ctx: Context) -> str:
    ctx.log("waiting")
    while not ctx.should_stop:
        time.sleep(0.005)
    if ctx.cancelled:
        raise InterruptedError(ctx.why_stopped)
    return "finished"

@app.job("tells-and-waits")
async def tells_and_waits(ctx: AsyncContext) -> None:
    for line in range(3):
        await ctx.log(f"line {line}")
        await asyncio.sleep(0.01)
    await ctx.progress(1)
    await asyncio.Event().wait()

@app.job("yields-when-told")
async def yields_when_told(ctx: AsyncContext) -> None:
    await ctx.log("waiting")
    while not ctx.should_stop:
        await asyncio.sleep(0.005)
    raise Yielded([1])

@app.job("tells")
async def tells(ctx: AsyncContext) -> None:
    for done in range(1_000):
        await ctx.progress(done, total=1_000, note=f"at {done}")
        await asyncio.sleep(0)

@app.job("logs")
async def logs(ctx: AsyncContext) -> None:
    logging.getLogger("mine").info("number %d", 1)
    logging.getLogger("mine").debug("not asked for")
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("failed")
    await asyncio.to_thread(logging.warning, "from a thread")
    logging.error("%d arguments", "no")
    await ctx.log("x" * 10_000)

@app.job("logs-much")
def logs_much(ctx: Context, lines: int, size: int) -> None:
    for line in range(lines):
        ctx.log("x" * size, level="debug")

@app.job("meets")
def meets(ctx: Context) -> None:
    together.wait(90)

together = threading.Barrier(3)
"""


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedKeeper]:
    """One runner for the tests that leave it as they found it."""
    with ScriptedKeeper(tmp_path_factory.mktemp("runner"), HANDLERS) as keeper:
        yield keeper


def answer(keeper: ScriptedKeeper, value: object = None, error: object = None) -> list[Any]:
    """Answer the runner's next call; returns what it asked."""
    _, call, ticket, name, arguments = keeper.hear("call")
    keeper.say("answer", call, value, error)
    return [ticket, name, arguments]


def children(end: list[Any]) -> list[dict[str, Any]]:
    """The payloads of the children of an end."""
    return [json.loads(job.payload) for job in end_from_wire(end).children]


def test_it_says_what_it_can_run(keeper: ScriptedKeeper) -> None:
    """Its hello names the application, its kinds, and where they are queued."""
    _, hello = keeper.hear("hello")
    assert hello["pid"] == keeper.process.pid
    assert (hello["app"], hello["client"], hello["url"]) == ("tests", "tests", None)
    assert hello["kinds"]["double"] == {"queue": "default", "isolation": "shared"}
    assert hello["kinds"]["treble"] == {"queue": "slow", "isolation": "process"}


def test_it_runs_coroutines_and_functions(keeper: ScriptedKeeper) -> None:
    """One frame may carry many of both."""
    rows = [keeper.row("double", {"n": n}) for n in range(300)] + [keeper.row("treble", {"n": n}) for n in range(300)]
    keeper.say("run", rows)
    for row in rows:
        n = json.loads(row.payload)["n"]
        assert keeper.end_of(row.ticket) == ["succeed", str(n * (2 if row.kind == "double" else 3))]


def test_what_ends_together_is_told_together(keeper: ScriptedKeeper) -> None:
    """No end costs a frame of its own while others end."""
    rows = [keeper.row("child", {"n": n}) for n in range(200)]
    keeper.say("run", rows)
    for row in rows:
        assert keeper.end_of(row.ticket) == ["succeed", "null"]
    assert keeper.frames_of_ends(rows) <= 4


def test_a_context_knows_its_run(keeper: ScriptedKeeper) -> None:
    """What came with the run is what the handler reads."""
    known = {"queue": "q", "epoch": 4, "failures": 2, "losses": 1, "timeout_seconds": 9.5}
    ticket = keeper.run("known", None, finish_by="2030-01-01T00:00:00+00:00", **known)
    _, output = keeper.end_of(ticket)
    told = {"finish_by": "2030-01-01 00:00:00+00:00", "cancelled": False, "stop": False, "left": True, "why": None}
    assert json.loads(output) == {"job_id": "job-known", "kind": "known", **known, **told}


def test_a_payload_that_does_not_fit_fails_for_good(keeper: ScriptedKeeper) -> None:
    """No retry would change it (field case R41)."""
    ticket = keeper.run("double", {"n": "2", "m": 1})
    _, code, message, _, permanent, _ = keeper.end_of(ticket)
    assert (code, permanent) == ("PAYLOAD_INVALID", True)
    assert "payload.n" in message


def test_a_kind_without_handler_is_given_back(keeper: ScriptedKeeper) -> None:
    """It costs the job nothing (field case R49)."""
    assert keeper.end_of(keeper.run("unheard")) == ["release", "there is no handler for 'unheard' here", None]


def test_a_save_returns_when_it_was_answered(keeper: ScriptedKeeper) -> None:
    """The saves of a run are numbered, and the last that is durable is what is loaded (field case R36)."""
    ticket = keeper.run("saves", checkpoint="[0]")
    assert answer(keeper, {"revision": 5, "superseded": False}) == [ticket, "save", [1, "[0,1]"]]
    assert answer(keeper, {"revision": 5, "superseded": True}) == [ticket, "save", [2, "[0,1,2]"]]
    assert keeper.end_of(ticket) == ["succeed", "[0,1,2]"]
    in_thread = keeper.run("saves-in-thread")
    assert answer(keeper, {"revision": 5, "superseded": False}) == [in_thread, "save", [1, "[7]"]]
    assert keeper.end_of(in_thread) == ["succeed", "[7]"]


@pytest.mark.parametrize("kind", ["saves", "saves-in-thread"])
def test_a_refused_save_raises_in_the_handler(keeper: ScriptedKeeper, kind: str) -> None:
    """The error is the one that the keeper met."""
    ticket = keeper.run(kind)
    answer(keeper, None, error_to_wire(EpochStale("granted again")))
    _, code, message, _, permanent, _ = keeper.end_of(ticket)
    assert (code, message, permanent) == ("EPOCH_STALE", "granted again", False)


def test_a_checkpoint_of_another_type_is_refused(keeper: ScriptedKeeper) -> None:
    """Other code saved it; nothing is guessed."""
    _, code, message, *_ = keeper.end_of(keeper.run("saves", checkpoint='{"at":1}'))
    assert code == "PAYLOAD_INVALID"
    assert "checkpoint" in message


def test_children_come_with_the_success(keeper: ScriptedKeeper) -> None:
    """They ride in the end of the run, with their options."""
    end = keeper.end_of(keeper.run("with-children"))
    assert children(end) == [{"n": 1}, {"n": 2}]
    first, second = end_from_wire(end).children
    assert (json.loads(end[1]), second.key) == (first.id, "two")
    degraded = keeper.end_of(keeper.run("with-children-in-thread"))
    assert degraded[:3] == ["degrade", "null", ["no sound"]]
    assert children(degraded) == [{"n": 1}]


def test_a_failure_submits_no_children(keeper: ScriptedKeeper) -> None:
    """The next run asks again."""
    end = keeper.end_of(keeper.run("with-children", {"fails": True}))
    assert end[:3] == ["fail", "ValueError", "no children"]
    assert len(end) == 6


def test_a_submission_of_its_own_is_a_call(keeper: ScriptedKeeper) -> None:
    """It is answered once it is committed."""
    ticket = keeper.run("submits-at-once")
    told, name, (_, _, jobs) = answer(keeper, [["0191f2d0-1111-7000-8000-000000000000", "existing"]])
    assert (told, name) == (ticket, "submit")
    assert [new_job_from_wire(job).payload for job in jobs] == ['{"n":5}']
    assert keeper.end_of(ticket) == ["succeed", '["existing"]']


@pytest.mark.parametrize("kind", ["waits", "waits-in-thread"])
@pytest.mark.parametrize("why", ["cancelled", "timeout", "lease_lost"])
def test_a_stop_ends_the_run_under_its_reason(keeper: ScriptedKeeper, kind: str, why: str) -> None:
    """A coroutine is cancelled, a function finds out when it looks."""
    ticket = keeper.run(kind)
    keeper.hear_notes_of(ticket)
    keeper.say("stop", ticket, why)
    end = keeper.end_of(ticket)
    assert end[:2] == ["fail", why.upper()]
    assert end[4:] == [False, None]


@pytest.mark.parametrize("kind", ["waits", "waits-in-thread"])
def test_a_run_stopped_by_a_drain_is_given_back(keeper: ScriptedKeeper, kind: str) -> None:
    """It is no failure (field case R26)."""
    ticket = keeper.run(kind)
    keeper.hear_notes_of(ticket)
    keeper.say("stop", ticket, "drained")
    assert keeper.end_of(ticket) == ["release", "drained", None]


def test_a_run_told_to_stop_before_it_began_does_not_begin(keeper: ScriptedKeeper) -> None:
    """And it has an end all the same."""
    row = keeper.row("double", {"n": 1})
    keeper.socket.sendall(encode_frame(["run", [row]]) + encode_frame(["stop", row.ticket, "cancelled"]))
    assert keeper.end_of(row.ticket)[:2] == ["fail", "CANCELLED"]


def test_a_stop_for_nobody_is_nothing(keeper: ScriptedKeeper) -> None:
    """The run may have ended on the way."""
    keeper.say("stop", 10**9, "cancelled")
    assert keeper.end_of(keeper.run("double", {"n": 1})) == ["succeed", "2"]


def test_progress_is_coalesced_and_its_last_word_comes_before_the_end(keeper: ScriptedKeeper) -> None:
    """A loop that tells at every step floods nobody."""
    ticket = keeper.run("tells")
    assert keeper.end_of(ticket) == ["succeed", "null"]
    notes = keeper.notes_of(ticket)
    assert len(notes) < 500
    assert notes[-1] == ["progress", 999, 1_000, "at 999"]


def test_what_a_long_run_tells_does_not_wait_for_its_end(keeper: ScriptedKeeper) -> None:
    """However soon after other notes it was told."""
    ticket = keeper.run("tells-and-waits")
    notes = keeper.hear_notes_of(ticket, least=4)
    assert [note[-1] for note in notes if note[0] == "log"] == ["line 0", "line 1", "line 2"]
    keeper.say("stop", ticket, "drained")
    assert keeper.end_of(ticket) == ["release", "drained", None]


def test_logging_in_a_run_is_kept_with_it(keeper: ScriptedKeeper) -> None:
    """From its tasks and threads, with tracebacks, whatever the arguments are."""
    before = time.time()
    ticket = keeper.run("logs")
    assert keeper.end_of(ticket) == ["succeed", "null"]
    lines = keeper.notes_of(ticket)
    assert all(what == "log" and before <= at <= time.time() for what, at, _, _ in lines)
    levels, texts = [line[2] for line in lines], [line[3] for line in lines]
    assert levels == ["info", "error", "warning", "error", "info"]
    assert texts[0] == "number 1"
    assert texts[1].startswith("failed\nTraceback")
    assert texts[1].endswith("ZeroDivisionError: division by zero")
    assert texts[2:4] == ["from a thread", "%d arguments"]
    assert len(texts[4].encode()) <= WORKER.log_line_bytes_max
    assert "bytes cut" in texts[4]


@pytest.mark.parametrize(("lines", "size", "kept"), [(1_200, 1, 1_000), (200, 1_024, 64)])
def test_the_log_of_a_run_is_bounded_and_says_so(keeper: ScriptedKeeper, lines: int, size: int, kept: int) -> None:
    """By lines and by bytes; the last line counts the rest."""
    ticket = keeper.run("logs-much", {"lines": lines, "size": size})
    assert keeper.end_of(ticket) == ["succeed", "null"]
    notes = keeper.notes_of(ticket)
    assert len(notes) == kept + 1
    assert notes[-1][2:] == ["warning", f"{lines - kept} more lines were not kept."]


def test_functions_run_side_by_side(keeper: ScriptedKeeper) -> None:
    """Each slot may have a thread."""
    tickets = [keeper.run("meets") for _ in range(3)]
    assert [keeper.end_of(ticket) for ticket in tickets] == [["succeed", "null"]] * 3


def test_a_drain_asks_handlers_to_come_to_an_end(tmp_path: Any) -> None:
    """They may finish, or yield."""
    with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
        finishing, yielding = keeper.run("waits-in-thread"), keeper.run("yields-when-told")
        for ticket in (finishing, yielding):
            keeper.hear_notes_of(ticket)
        keeper.say("drain")
        assert keeper.end_of(finishing) == ["succeed", '"finished"']
        assert keeper.end_of(yielding) == ["yield", "[1]"]


def test_a_retired_runner_finishes_and_rests(tmp_path: Any) -> None:
    """What runs is awaited; then the process ends by itself."""
    with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
        ticket = keeper.run("waits-in-thread")
        keeper.hear_notes_of(ticket)
        keeper.say("retire")
        keeper.say("drain")
        assert keeper.end_of(ticket) == ["succeed", '"finished"']
        keeper.hear("resting")
        assert keeper.exit_status() == 0


def test_a_runner_rests_only_when_everything_was_taken(tmp_path: Any) -> None:
    """Twelve megabytes fit into no socket's buffer; the frames arrive whole and in order."""
    with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
        rows = [keeper.row("echo", {"text": "x" * 240_000}) for _ in range(50)]
        keeper.say("run", rows)
        keeper.say("retire")
        for row in rows:
            assert keeper.end_of(row.ticket) == ["succeed", json.dumps("x" * 240_000)]
        keeper.hear("resting")
        assert keeper.exit_status() == 0


def test_an_idle_runner_rests_at_once(tmp_path: Any) -> None:
    """In silence."""
    with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
        keeper.say("retire")
        keeper.hear("resting")
        assert keeper.exit_status() == 0
        assert keeper.printed == ""


def test_a_keeper_that_is_not_understood_is_left(tmp_path: Any) -> None:
    """With another status than a crash of a handler."""
    with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
        keeper.hear("hello")
        keeper.say("dance")
        assert keeper.exit_status() == 4
        assert "dance" in keeper.printed
