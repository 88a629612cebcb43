"""testigo: work that cannot be lost, results that can be proved.

A durable-work engine on PostgreSQL. Every change of truth is a command, sent through one door:

    from testigo import Action, Database, NewJob, encode, submit

    with Database("embedded:") as db:
        receipt = db.run(submit, NewJob("media.transcode", encode({"path": "a.mp4"})), action=Action("me"))
"""

from testigo.authority.actions import Action
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit, submit_many, submit_within
from testigo.errors import Error
from testigo.rules.documents import encode, parse
from testigo.store.connections import run_within, run_within_async
from testigo.store.database import AsyncDatabase, Database

__all__ = [
    "Action",
    "AsyncDatabase",
    "Database",
    "Error",
    "NewJob",
    "encode",
    "parse",
    "run_within",
    "run_within_async",
    "submit",
    "submit_many",
    "submit_within",
]
