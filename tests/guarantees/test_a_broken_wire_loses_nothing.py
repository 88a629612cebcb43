"""A wire between worker and database that is cut, slow, silent or deaf costs time and no job (promises 1 to 4)."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.wire import Wire, wire
from tests.worker.fleet import fleet
from tests.worker.load import Load
from tests.world import World

JOBS = 120
DELAY_SECONDS = 0.02


def test_it_is_cut_slow_half_closed_and_silent(
    world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range
) -> None:
    """Whatever was on its way, in either direction, is asked again and takes effect once (spec P-01, P-03, P-16, P-17).

    Each of two workers has a wire of its own, and each round brings some of the misfortunes.
    """
    with ExitStack() as laid:
        wires, urls = zip(*(laid.enter_context(wire(database_url)) for _ in range(2)), strict=True)
        workers = laid.enter_context(fleet(tmp_path, urls))
        load = Load(world, chance, workers.tend)
        workers.ready()
        for _ in kills:
            load.add(JOBS)
            for ended in sorted(chance.sample(range(JOBS * 3 // 4), 2)):
                load.await_ended(ended)
                chance.choice(_MISFORTUNES)(chance.choice(wires))
            load.await_all()
            load.check()
        assert all(each.starts == 1 for each in workers.workers), "a worker outlives its connections"


def _slow(wire: Wire) -> None:
    wire.delay_seconds = DELAY_SECONDS - wire.delay_seconds


def _refuse(wire: Wire) -> None:
    wire.refuse(3)


_MISFORTUNES: list[Callable[[Wire], object]] = [Wire.cut, Wire.half_close, Wire.fall_silent, _slow, _refuse]


def test_it_is_deaf(world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range) -> None:
    """Wake-ups are lost without an error: polling finds the jobs, and another line is taken (field case R66)."""
    with wire(database_url) as (laid, url), fleet(tmp_path, [url]) as workers:
        load = Load(world, chance, workers.tend)
        workers.ready()
        load.await_that(laid.deafen)
        for _ in kills:
            load.add(JOBS // 4)
            load.await_all()
            load.check()
        load.await_that(laid.deafen)
