"""report: what runs tell of themselves while they run, and how it is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from testigo.authority import read
from testigo.authority.actions import JobId
from testigo.authority.prune import prune_jobs
from testigo.authority.read import LogPlace, ProgressView
from testigo.authority.redact import Part, redact
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.sessions import close_session, drain_session
from testigo.errors import Invalid, NotFound
from testigo.rules.documents import Document
from testigo.rules.outcomes import Succeed, Yield
from testigo.settings import LIMITS, WORKER
from tests.races import in_line
from tests.world import Worker, World, held

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

Lease = Any


def line(lease: Lease, n: int, text: str = "said") -> LogLine:
    """The n-th line of a run."""
    return LogLine(held(lease), n, NOON, "info", text)


def logged(world: World, job_id: JobId) -> list[str]:
    """All that the job's log has, in order."""
    return [each.text for each in world.db.run(read.log, job_id, limit=LIMITS.page_max).lines]


def running(world: World) -> tuple[Worker, Lease]:
    """A worker and the run that it has."""
    world.submit()
    worker = world.worker()
    return worker, worker.take()


def test_a_run_shows_how_far_it_is_and_how_long_it_will_take(world: World) -> None:
    """The last report counts, and its speed is that since the first (issue *progress with ETA*)."""
    worker, lease = running(world)
    assert world.db.run(read.job, lease.job_id).progress is None
    for n, (done, note) in enumerate([(900, "begun"), (920, ""), (950, "encoding")], 1):
        at = NOON + timedelta(seconds=n)
        assert world.db.run(report, worker.id, [Progress(held(lease), n, at, done, 1000.0, note)]) == (lease.job_id,)
    shown = world.db.run(read.progress, lease.job_id)
    assert isinstance(shown, ProgressView)
    assert (shown.epoch, shown.done, shown.total, shown.note) == (lease.epoch, 950.0, 1000.0, "encoding")
    assert shown.eta_seconds == 2.0
    assert world.db.run(read.job, lease.job_id).progress == shown


def test_a_report_that_comes_again_or_late_changes_nothing(world: World) -> None:
    """It has no receipt: what it tells is numbered (spec P-01)."""
    worker, lease = running(world)
    made = [Progress(held(lease), n, NOON, float(n)) for n in (1, 2)]
    lines = [line(lease, n, str(n)) for n in (1, 2, 3)]
    world.db.run(report, worker.id, made[1:], lines[1:])
    before = world.query("SELECT * FROM testigo.progress")
    for sent in ((made[1:], lines[1:]), (made[:1], lines[:1])):
        assert world.db.run(report, worker.id, *sent) == (lease.job_id,)
    assert world.query("SELECT * FROM testigo.progress") == before
    assert logged(world, lease.job_id) == ["2", "3"]


def test_who_does_not_hold_a_job_tells_nothing_of_it(world: World) -> None:
    """Job, lease, epoch and session are compared, and the rest of the report is kept (spec D-03, P-15)."""
    worker, lease = running(world)
    world.submit()
    other = worker.take()
    stranger = world.worker()
    own = held(lease)
    for fence in (own._replace(lease_id=other.lease_id), own._replace(epoch=lease.epoch + 1)):
        told = [Progress(fence, 1, NOON, 1.0), Progress(held(other), 1, NOON, 2.0)]
        assert world.db.run(report, worker.id, told, [LogLine(fence, 1, NOON, "info", "no")]) == (other.job_id,)
    assert world.db.run(report, stranger.id, [Progress(own, 1, NOON, 1.0)], [line(lease, 1)]) == ()
    assert world.db.run(read.progress, lease.job_id) is None
    assert logged(world, lease.job_id) == []
    assert world.db.run(read.job, other.job_id).progress is not None


def test_a_session_that_drains_still_tells_and_one_that_is_over_does_not(world: World) -> None:
    """As with any word of a holder (spec P-15, P-16)."""
    worker, lease = running(world)
    world.db.run(drain_session, worker.id)
    assert world.db.run(report, worker.id, lines=[line(lease, 1, "draining")]) == (lease.job_id,)
    world.db.run(close_session, worker.id)
    assert world.db.run(report, worker.id, lines=[line(lease, 2, "over")]) == ()
    assert logged(world, lease.job_id) == ["draining"]


def test_a_run_after_another_tells_of_itself(world: World) -> None:
    """Its progress takes the place of the earlier run's, its lines follow those, and it has a log of its own size;
    the earlier run's holder tells nothing any more."""
    worker, first = running(world)
    world.db.run(report, worker.id, [Progress(held(first), 7, NOON, 5.0, 10.0, "first")], [line(first, 9, "first")])
    worker.settle((first, Yield(Document("1"))))
    second = worker.take()
    world.db.run(report, worker.id, lines=[line(second, 1, "second"), line(first, 10, "late")])
    assert world.db.run(read.progress, first.job_id) is None
    made = Progress(held(second), 1, NOON + timedelta(seconds=9), 6.0)
    world.db.run(report, worker.id, [made])
    shown = world.db.run(read.progress, first.job_id)
    assert shown is not None
    assert (shown.epoch, shown.done, shown.total, shown.note, shown.eta_seconds) == (second.epoch, 6.0, None, "", None)
    assert logged(world, first.job_id) == ["first", "second"]


def test_of_a_talkative_run_the_first_lines_are_kept_and_the_others_counted(world: World) -> None:
    """Once a line is dropped all later ones are, however many reports they come in (issue *kept, capped*)."""
    worker, lease = running(world)
    most = WORKER.log_lines_max
    world.db.run(report, worker.id, lines=[line(lease, n) for n in range(1, most)])
    world.db.run(report, worker.id, lines=[line(lease, n) for n in range(most, most + 5)])
    world.db.run(report, worker.id, lines=[line(lease, most + 5)])
    page = world.db.run(read.log, lease.job_id, limit=LIMITS.page_max)
    assert (len(page.lines), page.lines[-1].place.n, page.more, page.dropped) == (most, most, False, 5)


def test_of_a_run_with_long_lines_so_many_bytes_are_kept(world: World) -> None:
    """A line is cut to its bound, in characters that are whole, and a line that fits after a dropped one is no
    hole in what is kept (issue *kept, capped*)."""
    worker, lease = running(world)
    fitting = WORKER.log_bytes_max // WORKER.log_line_bytes_max
    world.db.run(report, worker.id, lines=[line(lease, n, "é" * 9000) for n in range(1, fitting + 3)])
    world.db.run(report, worker.id, lines=[line(lease, fitting + 3, "short")])
    page = world.db.run(read.log, lease.job_id)
    sizes = [len(each.text.encode()) for each in page.lines]
    assert WORKER.log_bytes_max - WORKER.log_line_bytes_max < sum(sizes) <= WORKER.log_bytes_max
    assert max(sizes) <= WORKER.log_line_bytes_max
    assert (page.lines[-1].place.n, page.dropped) == (len(sizes), fitting + 3 - len(sizes))


def test_whatever_a_run_says_can_be_kept(world: World) -> None:
    """NUL, lone surrogates, quotes and backslashes, in lines, levels and notes (field cases R45, R46)."""
    worker, lease = running(world)
    odd = 'a\x00b\ud800c"\\{},NULL\n'
    told = [Progress(held(lease), 1, NOON, 1.0, note=odd)], [LogLine(held(lease), 1, NOON, odd * 9, odd)]
    world.db.run(report, worker.id, *told)
    page = world.db.run(read.log, lease.job_id)
    shown = world.db.run(read.progress, lease.job_id)
    assert shown is not None
    assert page.lines[0].text == shown.note == 'a\ufffdb\ufffdc"\\{},NULL\n'
    assert len(page.lines[0].level.encode()) <= 32


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"done": float("nan")}, "progress[0].done"),
        ({"done": -1.0}, "progress[0].done"),
        ({"total": float("inf")}, "progress[0].total"),
        ({"n": 0}, "progress[0].n"),
        ({"at": datetime(2026, 5, 1)}, "progress[0].at"),  # noqa: DTZ001
    ],
)
def test_what_is_no_progress_is_refused(world: World, wrong: dict[str, Any], field: str) -> None:
    """By its place and field, and nothing of the report is kept."""
    worker, lease = running(world)
    good = Progress(held(lease), 1, NOON, 1.0)
    with pytest.raises(Invalid) as refused:
        world.db.run(report, worker.id, [good._replace(**wrong)], [line(lease, 1)])
    assert refused.value.field == field
    with pytest.raises(Invalid):
        world.db.run(report, worker.id, [good, good])
    with pytest.raises(Invalid):
        world.db.run(report, worker.id, lines=[line(lease, 1), line(lease, 1)])
    assert logged(world, lease.job_id) == []


def test_a_log_is_read_in_pages_and_followed_while_it_grows(world: World) -> None:
    """Each line once, in its order, over the bounds of pages and of runs (issue *kept, capped, streamed*)."""
    worker, lease = running(world)
    seen, place = [], LogPlace()
    for run in range(3):
        world.db.run(report, worker.id, lines=[line(lease, n, f"{run}.{n}") for n in range(1, 6)])
        worker.settle((lease, Yield(Document("1"))))
        lease = worker.take()
        more = True
        while more:
            page = world.db.run(read.log, lease.job_id, after=place, limit=2)
            seen += [each.text for each in page.lines]
            place, more = page.place, page.more
    assert seen == [f"{run}.{n}" for run in range(3) for n in range(1, 6)]
    assert world.db.run(read.log, lease.job_id, after=place) == ((), place, False, 0)


def test_what_a_job_told_goes_with_it(world: World) -> None:
    """Pruned, nothing of it is left; and of a job that is not there nothing is told (spec P-26)."""
    worker, lease = running(world)
    world.db.run(report, worker.id, [Progress(held(lease), 1, NOON, 1.0)], [line(lease, 1)])
    worker.settle((lease, Succeed()))
    assert world.db.run(prune_jobs, older_than_days=0).pruned == 1
    for table in ("progress", "job_log"):
        assert world.query(f"SELECT * FROM testigo.{table}") == []
    with pytest.raises(NotFound, match="was pruned"):
        world.db.run(read.progress, lease.job_id)
    assert world.db.run(read.log, lease.job_id).lines == ()


def test_a_redaction_waits_for_a_report_that_a_settle_did_not_wait_for(world: World) -> None:
    """A report writes rows of its own and keeps no holder from its job; but no line comes after what redacts it
    (spec B-11, P-08, P-16)."""
    worker, lease = running(world)

    def tells(c: Connection) -> None:
        report(c, worker.id, [Progress(held(lease), 1, NOON, 1.0, note="secret")], [line(lease, 1, "secret")])
        assert worker.settle((lease, Succeed())).accepted == {0}

    in_line(world.db, tells, lambda: world.db.run(redact, lease.job_id, [Part.LOG], note="x", action=world.action()))
    (only,) = world.db.run(read.log, lease.job_id).lines
    shown = world.db.run(read.progress, lease.job_id)
    assert shown is not None
    assert only.text == shown.note
    assert only.text.startswith('{"redacted":')
