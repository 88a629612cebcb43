"""Promise 2 with real handlers: whatever a handler does with its process, its keeper beats, and nobody else gets it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.guarantees.crew import TERM_SECONDS, crew
from tests.worker.kit import await_end, await_state, new
from tests.world import World

FENCED = "could not be renewed in time"


@pytest.mark.parametrize("terms", [3.5, pytest.param(10, marks=pytest.mark.soak)])
def test_a_handler_that_outlasts_its_term_or_holds_its_process_runs_once(
    world: World, tmp_path: Path, database_url: str, terms: float
) -> None:
    """One sleeps for several terms, one blocks its loop and one keeps the interpreter to itself, each beside a second
    worker that would take what is given up: one run each, epoch 1, one outcome (Promise 2; field cases R01, R06)."""
    with (
        crew(tmp_path, database_url, "--slots", "1", "--runners", "3") as first,
        crew(tmp_path, database_url, "--slots", "1", "--runners", "3", name="second") as second,
    ):
        first.ready()
        second.ready()
        jobs = world.submit(*(new(kind, seconds=terms * TERM_SECONDS) for kind in ("works", "blocks", "hogs")))
        assert await_end(world, *jobs) == ["succeeded"] * 3
        assert FENCED not in first.log + second.log
    for job in jobs:
        assert world.job(job).epoch == 1
        assert world.events(job) == ["job.requested", "job.completed"]


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_beats_are_not_late_under_load(world: World, tmp_path: Path, database_url: str, seconds: int) -> None:
    """With every batching on and the worker busy, no two beats are further apart than two thirds of the term, and no
    job is claimed twice (field case R03; spec P-16: on a connection of its own)."""
    term_seconds = 6.0
    read = "SELECT CAST(id AS text) AS id, beat FROM testigo.session"
    with crew(tmp_path, database_url, "--term-seconds", str(term_seconds), "--slots", "50") as it:
        it.ready()
        (long,) = world.submit(new("works", seconds=float(seconds)))
        await_state(world, long, "running")
        ((session, beat),) = world.query(read)
        began_at = beat_at = time.monotonic()
        longest = 0.0
        while time.monotonic() - began_at < seconds:
            *_, last = world.submit(*(new("works") for _ in range(100)))
            await_end(world, last)
            ((same, now),) = world.query(read)
            assert same == session
            if now != beat:
                longest = max(longest, time.monotonic() - beat_at)
                beat, beat_at = now, time.monotonic()
        assert await_end(world, long) == ["succeeded"]
        assert longest < 2 / 3 * term_seconds
    assert not world.query("SELECT id, epoch, losses FROM testigo.job WHERE epoch > 1 OR losses > 0")
