"""How the demo's work stands, read from the database while it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from testigo.rules.states import TERMINAL
from testigo.store.command import single_statement
from testigo.store.sql import Statement
from testigo.worker.hosts import Recorded, recorded

__all__ = ["Holder", "Standing", "Tally", "holders", "standing"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What one agent has of the work: runs that go on, jobs that it ended, runs that were lost with it."""

    runs: int = 0
    ended: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """All of the queue's jobs together, and each agent's part."""

    ended: int = 0
    running: int = 0
    lost: int = 0
    agents: Mapping[str, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Holder:
    """An agent that has runs now, how many, and its processes."""

    agent: str
    runs: int
    processes: Recorded


_ENDED = Statement(
    """
    SELECT count(*) FILTER (WHERE state = ANY(CAST(CAST(:terminal AS text[]) AS testigo.job_state[]))) AS ended
    FROM testigo.job
    WHERE queue = :queue
    """
)

# What the agent itself tells has it as its actor; of a session that is over, a sweep tells.
_AGENTS = Statement(
    """
    SELECT agent, CAST(sum(runs) AS integer) AS runs, CAST(sum(ended) AS integer) AS ended,
           CAST(sum(lost) AS integer) AS lost
    FROM (SELECT s.agent, count(*) AS runs, 0 AS ended, 0 AS lost
          FROM testigo.job j JOIN testigo.session s ON s.id = j.session_id
          WHERE j.queue = :queue
          GROUP BY s.agent
          UNION ALL
          SELECT coalesce(CAST(data AS json) ->> 'agent', actor), 0,
                 count(*) FILTER (WHERE type IN ('job.completed', 'job.degraded')
                                     OR CAST(data AS json) ->> 'state' = 'permanent_failure'),
                 count(*) FILTER (WHERE type = 'job.lost')
          FROM testigo.event
          WHERE stream = :queue AND type IN ('job.completed', 'job.degraded', 'job.failed', 'job.lost')
          GROUP BY 1) AS parts
    GROUP BY agent
    """
)

_HOLDERS = Statement(
    """
    SELECT s.agent, p.processes, count(*) AS runs
    FROM testigo.job j
         JOIN testigo.session s ON s.id = j.session_id
         JOIN testigo.session_profile p ON p.session_id = s.id
    WHERE j.queue = :queue AND j.state = 'running' AND s.state = 'open'
    GROUP BY s.agent, p.processes
    ORDER BY count(*) DESC, s.agent
    """
)


def standing(c: Connection, queue: str) -> Standing:
    """How the jobs of a queue stand."""
    (ended,) = [row.ended for row in _ENDED.rows(c, queue=queue, terminal=sorted(TERMINAL))]
    agents = {row.agent: Tally(row.runs, row.ended, row.lost) for row in _AGENTS.rows(c, queue=queue)}
    running, lost = sum(each.runs for each in agents.values()), sum(each.lost for each in agents.values())
    return Standing(ended, running, lost, agents)


@single_statement
def holders(c: Connection, queue: str) -> Sequence[Holder]:
    """The agents that have runs of a queue now, those with most runs first."""
    rows = [(row, recorded(json.loads(row.processes))) for row in _HOLDERS.rows(c, queue=queue)]
    return [Holder(row.agent, row.runs, processes) for row, processes in rows if processes is not None]
