"""The journal on the oldest PostgreSQL that is served."""

from __future__ import annotations

import uuid

import pytest

from testigo.journal.history import history, runs
from testigo.journal.prune import prune_events
from testigo.journal.streams import read, streams
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.journal.everything import do_everything, keep_in_full
from tests.services import create_database, drop_database
from tests.world import World


@pytest.mark.needs_postgres15
def test_the_journal_reads_alike_on_postgresql_15(postgres15_url: str) -> None:
    """Pages, histories, runs and prunes: each statement gives there what it gives on the newest (spec B-03, P-27)."""
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(postgres15_url, name)
    migrate(url)
    with Database(url) as db:
        world = World(db)
        keep_in_full(world, "q")
        do_everything(world)
        (stream,) = db.run(streams)
        whole = db.run(read, "q", limit=1000).events
        assert [event.sequence for event in whole] == list(range(1, stream.head + 1))
        assert db.run(read, "q", after=5, limit=3).events == whole[5:8]
        for job in {event.subject for event in whole}:
            told = [event for event in whole if event.subject == job]
            first = db.run(history, job, limit=1)
            rest = db.run(history, job, after=first.next_after).events if first.next_after else ()
            assert [*first.events, *rest] == told
            assert [run.epoch for run in db.run(runs, job)] == sorted(
                {event.data.get("epoch", 0) for event in told} - {0}
            )
        assert db.run(prune_events, older_than_days=0, limit=4) == (4, True)
        assert db.run(read, "q", after=4).events == whole[4:104]
    drop_database(postgres15_url, name)
