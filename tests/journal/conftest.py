"""Streams for tests: as many events as asked for, through the real door."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testigo.authority.submissions import NewJob
from tests.world import World

Fill = Callable[..., None]


@pytest.fixture
def fill(world: World) -> Fill:
    """Append so many events to the stream `q`, or to another queue's: a job is requested for each."""

    def submit(count: int, queue: str = "q") -> None:
        world.submit(*(NewJob("work", queue=queue) for _ in range(count)))

    return submit
