"""The handlers that `bench.worker` measures: they do nothing, or tell when they began."""

from __future__ import annotations

import asyncio
import os
import struct
import time

from testigo import App, AsyncContext

app = App("bench")

MARK = struct.Struct("<qq")
"""What `mark` appends: the job's number, and when it began, in nanoseconds of the monotonic clock."""


@app.job("bench.noop", queue="bench")
async def noop(ctx: AsyncContext, path: str, height: int) -> None:
    """Nothing."""


@app.job("bench.mark", queue="bench")
async def mark(ctx: AsyncContext, number: int, seconds: float = 0.0) -> None:
    """Append to the file that BENCH_MARKS names, then sleep."""
    descriptor = os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, MARK.pack(number, time.monotonic_ns()))
    finally:
        os.close(descriptor)
    if seconds:
        await asyncio.sleep(seconds)
