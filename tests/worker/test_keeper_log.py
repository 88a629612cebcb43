"""A worker works, whether or not somebody takes what it says."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.worker.kit import await_end, launch, new
from tests.world import World

MODULE = """
from testigo import App, AsyncContext

app = App("jobs")

@app.job("one", queue="q")
async def one(ctx: AsyncContext) -> int:
    return 1
"""


def test_a_log_that_nobody_reads_stops_no_work(world: World, tmp_path: Path, database_url: str) -> None:
    """A terminal after a Ctrl-S, or a pipe whose reader hangs. Once it is read, what was said is there."""
    (tmp_path / "jobs.py").write_text(MODULE, "utf-8")
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    it = launch(tmp_path, database_url, "--runners", "1", "--queues", "q", log=pipe)
    try:
        (job,) = world.submit(new("one"))
        assert await_end(world, job) == ["succeeded"]
        it.signal(signal.SIGTERM)
        os.set_blocking(reader, True)
        os.close(writer)
        with os.fdopen(reader, "rb") as said:
            log = said.read()
        assert b" 1 runners of " in log
        assert b"draining" in log
        assert it.wait() == 0
    finally:
        it.destroy()
