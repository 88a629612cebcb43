"""Submitting inside the caller's own transaction, on a connection of any kind (spec P-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from testigo import App, Job
from testigo.errors import ConnectionUnsupported, KeyConflict, NotFound
from testigo.testing import Trial, trial
from tests.app.handlers import Handlers, Receipt
from tests.store.callers import KINDS, Caller


@pytest.fixture(name="one")
def fixture_trial(server_url: str) -> Iterator[Trial]:
    """An installation in a schema of its own of the database that every kind of caller connects to."""
    with trial(server_url) as one:
        yield one


@pytest.fixture(name="shop")
def fixture_shop(one: Trial) -> App:
    """An App that was made for another place and uses this one meanwhile."""
    app = App("shop", "postgresql://nobody@127.0.0.1:1/nowhere")
    one.use(app)
    return app


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_exists_if_and_only_if_its_transaction_commits(server_url: str, shop: App, kind: str) -> None:
    """A rollback leaves no job behind; a commit leaves one that runs, whatever the caller's library is."""
    order = Handlers(shop).order
    with KINDS[kind](server_url) as caller:
        given_up = _submit(caller, order.options(connection=caller.connection), 1)
        caller.rollback()
    with KINDS[kind](server_url) as caller:
        kept = _submit(caller, order.options(connection=caller.connection), 2)
        with pytest.raises(NotFound):
            kept.state()
        caller.commit()
    assert shop.run_until_idle() == 1
    assert kept.result(timeout=0) == Receipt(2, [])
    with pytest.raises(NotFound):
        given_up.state()


def test_a_batch_is_submitted_in_one_transaction_as_well(server_url: str, shop: App) -> None:
    """In both colours, and a key that names other work refuses its submission, and leaves the rest to the caller."""
    order = Handlers(shop).order
    with psycopg.connect(server_url) as connection:
        bound = order.options(connection=connection)
        jobs = bound.submit_many([{"number": n} for n in range(3)])
        keyed = bound.options(key="k")
        jobs.append(keyed.submit(number=3))
        with pytest.raises(KeyConflict):
            keyed.submit(number=4)
    asyncio.run(_submit_many(server_url, order, jobs))
    shop.run_until_idle()
    assert [job.result(timeout=0).number for job in jobs] == [0, 1, 2, 3, 5, 6]


def test_a_connection_of_the_other_colour_is_refused(server_url: str, shop: App) -> None:
    """By a message that says which call to make instead (CONNECTION_UNSUPPORTED)."""
    order = Handlers(shop).order
    with psycopg.connect(server_url) as connection:
        with pytest.raises(ConnectionUnsupported, match="synchronous"):
            asyncio.run(order.options(connection=connection).submit_async(number=1))
        with pytest.raises(ConnectionUnsupported, match="not a connection"):
            order.options(connection=connection.cursor()).submit(number=1)


def _submit(caller: Caller, bound: Any, number: int) -> Job[Receipt]:
    job: Job[Receipt] = caller.wait((bound.submit_async if caller.is_async else bound.submit)(number=number))
    return job


async def _submit_many(server_url: str, order: Any, jobs: list[Job[Receipt]]) -> None:
    async with await psycopg.AsyncConnection.connect(server_url) as connection:
        jobs += await order.options(connection=connection).submit_many_async([{"number": 5}, {"number": 6}])
