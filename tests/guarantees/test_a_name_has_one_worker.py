"""A name that was set belongs to one worker at a time: who comes second waits, or takes it and the first one ends."""

from __future__ import annotations

import signal
from pathlib import Path

from testigo.errors import SessionReplaced
from tests.guarantees.crew import crew, told
from tests.worker.kit import await_end, await_that, new
from tests.world import World

LIVE = "SELECT count(*) AS n FROM testigo.session WHERE agent = 'the one' AND state IN ('open', 'draining')"
NAMED = ("--agent", "the one")


def test_a_second_worker_of_a_name_waits_until_the_first_has_ended(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """It claims nothing before; it begins when the first was drained, and a third when the second was killed, without
    a wait for its term (spec P-20, P-21)."""
    with crew(tmp_path, database_url, *NAMED, name="first") as first:
        first.ready()
        with crew(tmp_path, database_url, *NAMED, name="second") as second:
            second.said("the one waits")
            assert world.query(LIVE)[0].n == 1
            (job,) = world.submit(new("works"))
            assert await_end(world, job) == ["succeeded"]
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
            second.ready()
            (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
            await_that(lambda: told(tmp_path, "waits"))
            with crew(tmp_path, database_url, *NAMED, name="third") as third:
                third.said("the one waits")
                second.signal(signal.SIGKILL)
                third.ready()
                (tmp_path / "go").touch()
                assert await_end(world, job) == ["succeeded"]
    assert world.job(job).losses == 1


def test_a_worker_whose_name_is_taken_kills_its_runners_and_ends(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Who says `--replace` takes the name: the other one learns of it, ends with that error, and its run is done again
    by its successor, later than the last sign of the first (Promise 2; spec P-16, P-21)."""
    with crew(tmp_path, database_url, *NAMED, name="first") as first:
        first.ready()
        (job,) = world.submit(new("waits", go=str(tmp_path / "go")))
        await_that(lambda: told(tmp_path, "waits"))
        with crew(tmp_path, database_url, *NAMED, "--replace", name="second") as second:
            second.ready()
            assert first.wait() == SessionReplaced.exit_status
            assert "took the place" in first.log
            await_that(lambda: told(tmp_path)[-1].epoch == 2)
            (tmp_path / "go").touch()
            assert await_end(world, job) == ["succeeded"]
    assert (world.job(job).output, world.job(job).losses) == ("2", 1)
