"""SIGKILL of anything, in the middle of everything: each job still ends once, as its handler said (promises 1 to 4)."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

from tests.worker.fleet import Fleet, fleet, send
from tests.worker.load import Load
from tests.world import World

JOBS = 120


def test_a_runner(world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range) -> None:
    """Its keeper reports its runs as lost, and they run again (spec P-20; field cases R20, R21)."""

    def kill(workers: Fleet) -> None:
        if runners := chance.choice(workers.workers).runners():
            send(signal.SIGKILL, chance.choice(runners))

    with fleet(tmp_path, [database_url] * 2) as workers:
        _attack(world, workers, chance, kills, kill)


def test_a_keeper(world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range) -> None:
    """Its runners die with it; the next one on the host takes back what they had (spec P-17, P-20)."""
    with fleet(tmp_path, [database_url]) as workers:
        _attack(world, workers, chance, kills, lambda workers: send(signal.SIGKILL, workers[0].pid))


def test_a_whole_group(world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range) -> None:
    """One of two workers goes with all that it started, in any order, and comes back (spec P-18, P-20)."""
    with fleet(tmp_path, [database_url] * 2) as workers:
        _attack(world, workers, chance, kills, lambda workers: chance.choice(workers.workers).kill_group(chance))


def _attack(world: World, workers: Fleet, chance: random.Random, kills: range, kill: Callable[[Fleet], None]) -> None:
    load = Load(world, chance, workers.tend)
    workers.ready()
    for _ in kills:
        load.add(JOBS)
        for ended in sorted(chance.sample(range(JOBS * 3 // 4), chance.randint(1, 2))):
            load.await_ended(ended)
            kill(workers)
        load.await_all()
        load.check()
