"""What is left to do when the demo stays: jobs that failed for a reason that has gone, and a worker that waits.

Whoever looks at the panel finds them, reads why they failed, and retries them, this time with success.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testigo.authority.actions import Action
from testigo.authority.read import end
from testigo.authority.submit import submit_many
from testigo.demo.crew import Crew
from testigo.demo.handlers import look
from testigo.store.database import Database

__all__ = ["LATE_FILES", "afterwards"]

LATE_FILES = ("orders.py", "invoices.py", "parcels.py")
"""Files that come only once the jobs that look at them have failed."""
LOOK_SECONDS = 0.05


@contextmanager
def afterwards(database: Database, crew_of: Callable[[str], Crew], queue: str, folder: Path) -> Iterator[None]:
    """Jobs that failed in this queue since their files were not in `folder`, where they are now; a worker serves it.

    Raises `Broken` when the worker ends unasked.
    """
    paths = [folder / name for name in LATE_FILES]
    jobs = [look.options(queue=queue).new_job(path=str(path)) for path in paths]
    with crew_of(queue) as crew:
        crew.start()
        submitted = database.run(submit_many, jobs, action=Action("demo")).jobs
        while not all(database.run(end, job.job_id).ended for job in submitted):
            crew.check()
            time.sleep(LOOK_SECONDS)
        for path in paths:
            path.write_text(f'"""The file {path.name}, which came late."""\n', "utf-8")
        yield
        crew.dismiss()
