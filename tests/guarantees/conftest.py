"""What the tests of the promises share: how often they try to break one, and the look afterwards."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import pytest

from tests.invariants import check
from tests.stage import Stage, staged
from tests.world import World

Rounds = Callable[[int], range]


@pytest.fixture(params=[pytest.param(1, id="rounds"), pytest.param(30, id="many-rounds", marks=pytest.mark.soak)])
def rounds(request: pytest.FixtureRequest) -> Rounds:
    """How often a race is run: as often as the test says, and thirty times that in `make soak`."""
    factor: int = request.param
    return lambda count: range(count * factor)


@pytest.fixture(params=[pytest.param(3, id="kills"), pytest.param(50, id="many-kills", marks=pytest.mark.soak)])
def kills(request: pytest.FixtureRequest) -> range:
    """The rounds of a loop that kills: three, and fifty in `make soak`."""
    factor: int = request.param
    return range(factor)


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The choices of one test. A failure prints their seed, and the command that makes the same ones again."""
    seed = int(os.environ.get("TESTIGO_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed {seed}; again: TESTIGO_SEED={seed} .venv/bin/pytest -m '' '{request.node.nodeid}'")
    return random.Random(seed)


@pytest.fixture(scope="session")
def stage(quiet_server_url: str) -> Iterator[Stage]:
    """An installation that is put back, and breaks when it is told to; one for each worker process.

    Some of what is done there waits until every transaction of its server is over: none is another test's.
    """
    with staged(quiet_server_url, "template") as stage:
        yield stage


@pytest.fixture(autouse=True)
def consistent(world: World) -> Iterator[None]:
    """After each test every invariant must hold, read from the database alone."""
    yield
    check(world.db)
