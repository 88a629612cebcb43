"""testigo as one of the job queues that a common harness measures beside each other.

The harness brings `_common`: the payload, the no-op body, and the command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import URL, awork, chunks, main

from testigo import App, AsyncContext, Database

SLOTS = os.environ.get("SLOTS", "800")
RUNNERS = os.environ.get("RUNNERS", "1")

app = App("bench", URL)


@app.job("noop", queue="bench")
async def noop(ctx: AsyncContext, i: int, pad: str, sleep: float = 0) -> None:
    """The harness's body."""
    await awork({"i": i, "pad": pad, "sleep": sleep})


def setup() -> None:
    """Make the schema."""
    with Database(URL) as db:
        db.migrate()


class Producer:
    """Submits, in batches and singly."""

    def open(self) -> None:
        """Connect, as the other producers do before the clock runs."""
        app.client().database.run(lambda c: None)

    def close(self) -> None:
        """Hang up."""
        app.close()

    def bulk(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Batches of 1,000, as the harness has it."""
        for chunk in chunks(jobs, 1000):
            noop.submit_many(chunk)

    def one(self, job: Mapping[str, Any]) -> None:
        """One call, one commit."""
        noop.submit(**job)


def worker() -> None:
    """Become the worker."""
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    words = ["-m", "testigo.worker", "peer_driver:app", "--url", URL, "--runners", RUNNERS, "--slots", SLOTS]
    os.execv(sys.executable, [sys.executable, *words])


if __name__ == "__main__":
    main(setup, Producer, worker)
