"""`testigo jobs prune`: remove jobs that ended long ago, each behind a tombstone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.asking import agree
from testigo.cli.call import Call, command
from testigo.cli.counting import counting
from testigo.cli.options import Yes
from testigo.settings import LIMITS, RETENTION

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from testigo.authority.read import Count

__all__ = ["group"]

group = call.group("jobs", "")


@command(group, "prune", "jobs prune", "jobs prune --older-than-days 7 --yes")
def prune(
    here: Call,
    older_than_days: Annotated[
        int, typer.Option("--older-than-days", min=0, metavar="DAYS", help="Only what ended longer ago than this.")
    ] = RETENTION.jobs_days,
    yes: Yes = False,
) -> None:
    """Remove jobs that ended long ago. A tombstone keeps each one's end, digest and key.

    Workers do this by themselves after 30 days. What others still need stays: parents that are waited for, and
    jobs whose successors stay. A pass looks at all jobs and begins at most 30 times in the time given.
    """
    from testigo.authority.prune import prune_jobs

    with here.database() as db:
        ripe = db.run(_ripe, older_than_days)
        removed = 0
        if ripe.n:
            agree(f"Remove {ripe} jobs that ended more than {older_than_days} days ago?", yes=yes)
            with counting("Removing", None if ripe.more else ripe.n) as count:
                more = True
                while more:
                    pruned, more = db.run(prune_jobs, older_than_days=older_than_days)
                    removed += pruned
                    count(pruned)
    here.answer({"found": ripe.n, "more": ripe.more, "removed": removed}, lambda: print(f"{removed:,} jobs removed."))
    if not removed and ripe.n:
        here.note("A pass came to its end a short while ago, or others still need these jobs.")


def _ripe(c: Connection, days: int) -> Count:
    """How many jobs ended longer ago, counted as far as `LIMITS.count_max`."""
    from testigo.authority.read.pages import counted
    from testigo.store.sql import Statement

    ripe = Statement(
        """
        SELECT count(*) AS n
        FROM (SELECT
              FROM testigo.job
              WHERE finished_at < now() - CAST(:days AS integer) * interval '1 day'
              LIMIT :count_max + 1) AS found
        """
    )
    (row,) = ripe.rows(c, days=days, count_max=LIMITS.count_max)
    return counted(row.n)
