"""A clock that a test moves for what waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from testigo import App, Context, JobFailed, State
from testigo.errors import Invalid
from testigo.testing import Trial


@pytest.fixture(name="later")
def fixture_later() -> datetime:
    """An hour from now."""
    return datetime.now(UTC) + timedelta(hours=1)


def test_a_job_for_later_runs_once_its_time_has_come(
    app: App, testigo: Trial, later: datetime, server_url: str
) -> None:
    """Also one that nobody has admitted yet; days, hours, minutes and seconds add up."""

    @app.job("work")
    def work(ctx: Context) -> int:
        return 7

    jobs = [work.options(run_at=later).submit()]
    with psycopg.connect(server_url) as connection:
        jobs.append(work.options(run_at=later, connection=connection).submit())
    testigo.clock.advance(minutes=59)
    assert app.run_until_idle() == 0
    testigo.clock.advance(seconds=61)
    assert app.run_until_idle() == 2
    assert [job.result(timeout=0) for job in jobs] == [7, 7]
    testigo.clock.advance(days=1, hours=1)  # what has ended keeps its dates
    assert [job.state() for job in jobs] == [State.SUCCEEDED] * 2


def test_a_job_lapses_once_its_date_has_passed(app: App, testigo: Trial, later: datetime) -> None:
    """`start_by` and `finish_by` come nearer as well (field case R50)."""

    @app.job("work")
    def work(ctx: Context) -> None:
        """Nothing."""

    jobs = [work.options(start_by=later).submit(), work.options(finish_by=later).submit()]
    testigo.clock.advance(hours=1, seconds=1)
    app.run_until_idle()
    for job in jobs:
        with pytest.raises(JobFailed):
            job.result(timeout=0)


def test_the_clock_goes_forwards_only(testigo: Trial) -> None:
    """Less than no time is refused (INVALID)."""
    testigo.clock.advance()
    with pytest.raises(Invalid) as refused:
        testigo.clock.advance(seconds=-1)
    assert refused.value.field == "seconds"
