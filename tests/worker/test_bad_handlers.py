"""What a handler raises, returns, prints or forks is told if it can be, and its runner goes on (R06, R45, R46)."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.worker.scripted_keeper import ScriptedKeeper

HARMLESS = """
import asyncio
import logging
import os
import sys
import threading
from testigo.worker.context import current_port

@app.job("fine")
async def fine(ctx: AsyncContext) -> None: ...

class StrRaises(Exception):
    def __str__(self) -> str:
        raise SystemExit("from str")
    __repr__ = __str__

class Recursive(Exception):
    def __repr__(self) -> str:
        return repr([self])
    __str__ = __repr__

class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(lambda: one + two)

class NoAttributes(Exception):
    def __getattribute__(self, name: str) -> object:
        raise KeyboardInterrupt(name)

class BadName(type):
    __name__ = property(lambda cls: 1 / 0)

class Nameless(Exception, metaclass=BadName):
    pass

ODD = {
    "str-raises": StrRaises(), "recursive": Recursive(), "unpicklable": Unpicklable(1, 2),
    "no-attributes": NoAttributes(), "nameless": Nameless("who"), "system-exit": SystemExit(7),
    "keyboard-interrupt": KeyboardInterrupt(), "generator-exit": GeneratorExit(), "cancelled": asyncio.CancelledError(),
    "stop-iteration": StopAsyncIteration(), "nul": ValueError("a\\x00b"), "surrogate": ValueError("a\\ud800b"),
    "huge": ValueError("x" * 10_000_000), "group": BaseExceptionGroup("all", [SystemExit(1), ValueError("two")]),
    "bytes": UnicodeDecodeError("utf-8", b"\\xff", 0, 1, "no"), "not-text": ValueError({"a": object}),
}

@app.job("raises")
async def raises(ctx: AsyncContext, which: str) -> None:
    raise ODD[which]

@app.job("raises-in-thread")
def raises_in_thread(ctx: Context, which: str) -> None:
    raise ODD[which]

@app.job("deep")
async def deep(ctx: AsyncContext) -> None:
    def dive() -> None:
        dive()
    dive()

@app.job("refuses")
async def refuses(ctx: AsyncContext, which: str) -> None:
    raise {"gone": Permanent("gone", "for\\x00ever"), "later": RetryAfter(30, "busy"),
           "blocked": Blocked("no money", needs="an approval", checkpoint={"at": 3}), "yielded": Yielded([3]),
           "yields-nonsense": Yielded(object()), "blocks-nan": Blocked("x", checkpoint=float("nan"))}[which]

@app.job("knows-better", permanent_on=(LookupError,))
async def knows_better(ctx: AsyncContext) -> None:
    raise KeyError("nowhere")

@app.job("returns")
async def returns(ctx: AsyncContext, which: str):
    return {"object": object(), "nan": float("nan"), "nul": "\\x00", "surrogate": "\\ud800", "bytes": b"\\xff",
            "large": "x" * 300_000, "itself": ITSELF, "lambda": lambda: 1}[which]

ITSELF = []
ITSELF.append(ITSELF)

@app.job("typed")
async def typed(ctx: AsyncContext) -> int:
    return "not a number"

class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no")

@app.job("logs-odd")
def logs_odd(ctx: Context) -> None:
    ctx.log("a\\x00b\\ud800c")
    ctx.log(StrRaises())
    logging.warning("%s", Unspeakable())

@app.job("progresses-odd")
async def progresses_odd(ctx: AsyncContext, which: str) -> None:
    odd = {"nan": float("nan"), "infinite": float("inf"), "negative": -1, "huge": 10**5000, "text": "half"}[which]
    await ctx.progress(odd)

@app.job("prints")
def prints(ctx: Context) -> None:
    for _ in range(4_000):
        print("x" * 1_000)

@app.job("leaves-tasks")
async def leaves_tasks(ctx: AsyncContext) -> None:
    async def exits() -> None:
        raise SystemExit(1)
    asyncio.create_task(exits())
    await asyncio.sleep(0)

@app.job("leaves-a-thread")
def leaves_a_thread(ctx: Context) -> None:
    threading.Thread(target=sys.exit).start()

@app.job("stops-the-loop")
async def stops_the_loop(ctx: AsyncContext) -> None:
    asyncio.get_running_loop().stop()

@app.job("forks")
async def forks(ctx: AsyncContext) -> str:
    child = os.fork()
    if child == 0:
        return "the child"
    _, status = os.waitpid(child, 0)
    return f"the child ended with {status}"

@app.job("forks-in-thread")
def forks_in_thread(ctx: Context) -> str:
    child = os.fork()
    if child == 0:
        ctx.log("from the child")
        return "the child"
    _, status = os.waitpid(child, 0)
    return f"the child ended with {status}"

@app.job("signals")
def signals(ctx: Context) -> int:
    import signal, subprocess
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    return child.wait()

@app.job("swallows")
async def swallows(ctx: AsyncContext) -> str:
    await ctx.log("waiting")
    for _ in range(2):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.log("swallowed")
            if ctx.why_stopped == "timeout":
                return "done all the same"
    return "never"

@app.job("submits-too-much")
async def submits_too_much(ctx: AsyncContext, at_once: bool) -> None:
    jobs = [large.new_job(text="x" * 200_000) for _ in range(400)]
    if at_once:
        current_port().submit(jobs)
    else:
        for _ in range(400):
            await ctx.submit(large, text="x" * 200_000)

@app.job("submits-too-many")
async def submits_too_many(ctx: AsyncContext) -> None:
    while True:
        await ctx.submit(fine)

@app.job("large")
async def large(ctx: AsyncContext, text: str) -> None: ...

left_behind = []

@app.job("late")
async def late(ctx: AsyncContext) -> None:
    async def save_later() -> None:
        await asyncio.sleep(0)
        try:
            await ctx.save(1)
        except Exception as error:
            told.set_result(type(error).__name__)
    global told
    told = asyncio.get_running_loop().create_future()
    left_behind.append(asyncio.create_task(save_later()))

@app.job("what-was-told")
async def what_was_told(ctx: AsyncContext) -> str:
    return await told
"""


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedKeeper]:
    """One runner, which all of these handlers leave alive."""
    with ScriptedKeeper(tmp_path_factory.mktemp("harmless"), HARMLESS) as keeper:
        yield keeper.ready()
        assert keeper.end_of(keeper.run("fine")) == ["succeed", "null"]


@pytest.mark.parametrize("kind", ["raises", "raises-in-thread"])
@pytest.mark.parametrize(
    ("which", "code", "message"),
    [
        ("str-raises", "handlers.StrRaises", "<StrRaises whose str() raised SystemExit>"),
        ("recursive", "handlers.Recursive", "<Recursive whose str() raised RecursionError>"),
        ("unpicklable", "handlers.Unpicklable", "<function Unpicklable"),
        ("no-attributes", "KeyboardInterrupt", ""),
        ("nameless", "handlers.Nameless", "who"),
        ("system-exit", "SystemExit", "7"),
        ("keyboard-interrupt", "KeyboardInterrupt", ""),
        ("generator-exit", "GeneratorExit", ""),
        ("cancelled", "asyncio.exceptions.CancelledError", ""),
        ("stop-iteration", "StopAsyncIteration", ""),
        ("nul", "ValueError", "a\ufffdb"),
        ("surrogate", "ValueError", "a\ufffdb"),
        ("huge", "ValueError", "xxx"),
        ("group", "BaseExceptionGroup", "all (2 sub-exceptions)"),
        ("bytes", "UnicodeDecodeError", "'utf-8' codec"),
        ("not-text", "ValueError", "{'a': <class 'object'>}"),
    ],
)
def test_any_exception_is_a_failure_that_can_be_kept(
    keeper: ScriptedKeeper, kind: str, which: str, code: str, message: str
) -> None:
    """By its class, its text made fit, and a bounded traceback; reading it runs no code of the handler's."""
    end = keeper.end_of(keeper.run(kind, {"which": which}))
    assert end[:2] == ["fail", code]
    assert end[2].startswith(message)
    assert len(end[2].encode()) <= 16 * 1024
    assert len(end[3].encode()) <= 16 * 1024
    assert end[4:] == [False, None]


def test_a_traceback_begins_in_the_handler(keeper: ScriptedKeeper) -> None:
    """The frames of the runner are nobody's business."""
    detail = keeper.end_of(keeper.run("knows-better"))[3]
    assert "execute.py" not in detail
    assert "in knows_better" in detail


def test_endless_recursion_is_a_failure(keeper: ScriptedKeeper) -> None:
    """And leaves enough stack to say so."""
    end = keeper.end_of(keeper.run("deep"))
    assert end[:2] == ["fail", "RecursionError"]


@pytest.mark.parametrize(
    ("which", "end"),
    [
        ("blocked", ["block", "no money", "an approval", '{"at":3}']),
        ("yielded", ["yield", "[3]"]),
    ],
)
def test_an_ending_ends_the_run_in_its_way(keeper: ScriptedKeeper, which: str, end: list[object]) -> None:
    """With its checkpoint."""
    assert keeper.end_of(keeper.run("refuses", {"which": which})) == end


@pytest.mark.parametrize(
    ("which", "code", "message", "permanent", "wait_seconds"),
    [
        ("gone", "gone", "for\ufffdever", True, None),
        ("later", "RETRY_AFTER", "busy", False, 30.0),
        ("yields-nonsense", "PAYLOAD_INVALID", "the value cannot be written", True, None),
        ("blocks-nan", "PAYLOAD_INVALID", "nan is not a number", True, None),
    ],
)
def test_an_ending_that_is_a_failure_says_what_follows(
    keeper: ScriptedKeeper, which: str, code: str, message: str, permanent: bool, wait_seconds: float | None
) -> None:
    """A checkpoint that cannot be kept is one, for good."""
    end = keeper.end_of(keeper.run("refuses", {"which": which}))
    assert end[:2] == ["fail", code]
    assert end[2].startswith(message)
    assert end[4:] == [permanent, wait_seconds]


def test_what_a_kind_knows_to_be_permanent_is(keeper: ScriptedKeeper) -> None:
    """A subclass counts, too."""
    end = keeper.end_of(keeper.run("knows-better"))
    assert (end[1], end[4]) == ("KeyError", True)


@pytest.mark.parametrize(
    ("which", "code"),
    [
        ("object", "PAYLOAD_INVALID"),
        ("nan", "PAYLOAD_INVALID"),
        ("nul", "PAYLOAD_INVALID"),
        ("surrogate", "PAYLOAD_INVALID"),
        ("bytes", "PAYLOAD_INVALID"),
        ("large", "PAYLOAD_TOO_LARGE"),
        ("itself", "PAYLOAD_INVALID"),
        ("lambda", "PAYLOAD_INVALID"),
    ],
)
def test_an_output_that_cannot_be_kept_fails_for_good(keeper: ScriptedKeeper, which: str, code: str) -> None:
    """The same work would make the same output."""
    end = keeper.end_of(keeper.run("returns", {"which": which}))
    assert (end[0], end[1], end[4]) == ("fail", code, True)


def test_an_output_of_another_type_fails_for_good(keeper: ScriptedKeeper) -> None:
    """Nothing is converted."""
    end = keeper.end_of(keeper.run("typed"))
    assert (end[1], end[4]) == ("PAYLOAD_INVALID", True)
    assert end[2].startswith("output"), "the code is not told twice"


@pytest.mark.parametrize("at_once", [True, False])
def test_children_that_no_frame_holds_fail_the_run(keeper: ScriptedKeeper, at_once: bool) -> None:
    """They are counted together, 80 MB here."""
    end = keeper.end_of(keeper.run("submits-too-much", {"at_once": at_once}))
    assert end[:2] == ["fail", "PAYLOAD_TOO_LARGE"]


def test_children_beyond_their_limit_fail_the_run(keeper: ScriptedKeeper) -> None:
    """In the handler's own line: its keeper is not asked to read them all."""
    end = keeper.end_of(keeper.run("submits-too-many"))
    assert end[:2] == ["fail", "INVALID"]
    assert "ctx.submit(fine)" in str(end[3])


def test_odd_lines_are_made_fit(keeper: ScriptedKeeper) -> None:
    """Logging never fails a run."""
    ticket = keeper.run("logs-odd")
    assert keeper.end_of(ticket) == ["succeed", "null"]
    lines = [note[3] for note in keeper.notes_of(ticket)]
    assert lines == ["a\ufffdb\ufffdc", "<StrRaises whose str() raised SystemExit>", "%s"]


@pytest.mark.parametrize("which", ["nan", "infinite", "negative", "huge", "text"])
def test_progress_that_is_no_amount_is_refused(keeper: ScriptedKeeper, which: str) -> None:
    """In the handler's own line."""
    end = keeper.end_of(keeper.run("progresses-odd", {"which": which}))
    assert end[:2] in (["fail", "INVALID"], ["fail", "TypeError"])


@pytest.mark.parametrize("kind", ["prints", "leaves-tasks", "leaves-a-thread", "stops-the-loop"])
def test_what_others_do_not_feel(keeper: ScriptedKeeper, kind: str) -> None:
    """Megabytes of output, exits of other tasks and threads, a stopped loop."""
    assert keeper.end_of(keeper.run(kind)) == ["succeed", "null"]
    assert keeper.end_of(keeper.run("fine")) == ["succeed", "null"]


@pytest.mark.parametrize("kind", ["forks", "forks-in-thread"])
def test_a_forked_child_does_not_speak_for_its_parent(keeper: ScriptedKeeper, kind: str) -> None:
    """It comes back from the handler, and ends there."""
    ticket = keeper.run(kind)
    assert keeper.end_of(ticket) == ["succeed", '"the child ended with 0"']
    assert keeper.notes_of(ticket) == []


def test_signals_are_for_the_keeper_but_reach_what_handlers_start(keeper: ScriptedKeeper) -> None:
    """Programs that handlers start are ended by SIGTERM as usual."""
    assert keeper.end_of(keeper.run("signals")) == ["succeed", str(-signal.SIGTERM)]


def test_a_handler_that_swallows_its_cancellation_may_still_finish(keeper: ScriptedKeeper) -> None:
    """Whether its end counts is for the authority to say."""
    ticket = keeper.run("swallows")
    keeper.hear_notes_of(ticket)
    keeper.say("stop", ticket, "timeout")
    assert keeper.end_of(ticket) == ["succeed", '"done all the same"']


def test_what_a_run_left_behind_cannot_speak_for_it(keeper: ScriptedKeeper) -> None:
    """A task that outlives its run saves nothing."""
    assert keeper.end_of(keeper.run("late")) == ["succeed", "null"]
    assert keeper.end_of(keeper.run("what-was-told")) == ["succeed", '"LeaseLost"']
