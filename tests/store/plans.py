"""Commands, and the plans by which the server ran their statements: what it touched, and through which index.

    with explained(url, Planning.ONCE) as seen:
        World(seen.db).submit()
        (plan,) = seen.plans
        assert plan.blocks < 100

The plans come from the server's own auto_explain, which sends each with the answer. They count blocks
and rows, never time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import psycopg
from sqlalchemy import event

from testigo.rules.contract import contract_text
from testigo.store.backends import Backends
from testigo.store.database import Database
from testigo.store.engines import sync_engine
from testigo.store.spares import Spares
from testigo.store.urls import server_url

__all__ = ["Plan", "Planning", "Scan", "Seen", "explained", "grow", "never_vacuum"]

ROWS = 50_000


class Planning(StrEnum):
    """When a hot statement is planned."""

    ONCE = "once"
    """On a direct connection, where the engine itself prepares and sets what is needed (decision record 0011)."""
    EACH_TIME = "each time"
    """As behind a pooler: nothing is prepared, and nothing is set in the session."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A place in a plan where rows of a table are found; `index` is empty for a sequential scan."""

    table: str
    index: str
    condition: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How the server ran one statement."""

    query: str
    nodes: tuple[dict[str, Any], ...]
    compiled: bool

    @property
    def blocks(self) -> int:
        """How many blocks were touched, wherever they were."""
        return max(int(node["Shared Hit Blocks"] + node["Shared Read Blocks"]) for node in self.nodes)

    def scans(self, table: str) -> list[Scan]:
        """Where this table's rows are found. Its indexes are recognised by their names."""
        return [
            Scan(table, node.get("Index Name", ""), node.get("Index Cond", ""))
            for node in self.nodes
            if node["Node Type"].endswith("Scan") and table in (node.get("Relation Name"), _table_of(node))
            if node["Node Type"] != "Bitmap Heap Scan"  # what is below it says how the rows were found
        ]


@dataclass(frozen=True, slots=True)
class Seen:
    """An installation of one connection, and the plans of the statements that it sends."""

    db: Database
    plans: list[Plan] = field(default_factory=list)

    def hear(self, notice: psycopg.errors.Diagnostic) -> None:
        """Take a plan from a notice."""
        _, found, document = (notice.message_primary or "").partition("plan:\n")
        if found:
            told = json.loads(document)
            self.plans.append(Plan(told["Query Text"], tuple(_nodes(told["Plan"])), "JIT" in told))


@contextmanager
def explained(url: str, planning: Planning) -> Iterator[Seen]:
    """An installation whose statements are planned so, and explained."""
    engine = sync_engine(server_url(url), schema="testigo", pool_size=1)
    spares = Spares(engine, Backends(engine))
    with Database(url) as db:
        seen = Seen(db)

        def opened(connection: psycopg.Connection, _: object) -> None:
            connection.add_notice_handler(seen.hear)
            hand = psycopg.Cursor(connection)  # ours take one statement at a time
            hand.execute(_EXPLAIN)
            if planning is Planning.EACH_TIME:
                hand.execute("RESET plan_cache_mode; RESET enable_seqscan; RESET jit")
                connection.prepare_threshold = None
            connection.commit()

        event.listen(engine, "connect", opened)
        db._engine, db._spares = engine, spares
        yield seen


def never_vacuum(hand: psycopg.Connection) -> None:
    """Let no statistics of this installation's tables come about by themselves."""
    for (table,) in hand.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'testigo'").fetchall():
        hand.execute(f"ALTER TABLE testigo.{table} SET (autovacuum_enabled = off)")


def grow(hand: psycopg.Connection) -> None:
    """Let the installation have 50,000 jobs, a tenth of them running and a tenth ended, and what goes with them."""
    hand.execute(_JOBS, {"rows": ROWS, "contract": contract_text(None, None, None)})
    for statement in _REST:
        hand.execute(statement)


_EXPLAIN = """
    LOAD 'auto_explain';
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_analyze = on;
    SET auto_explain.log_buffers = on;
    SET auto_explain.log_timing = off;
    SET auto_explain.log_format = json;
    SET auto_explain.log_level = notice;
"""

_JOBS = """
    INSERT INTO testigo.job (id, created_at, ready_at, timeout_seconds, state, priority, attempts, crash_limit,
                             queue, kind, stream, client, contract, payload, lease_id, session_id, grant_n)
    SELECT gen_random_uuid(), now(), now() - n * interval '1 ms', 120,
           CAST(CASE n %% 10 WHEN 0 THEN 'running' WHEN 1 THEN 'succeeded' ELSE 'ready' END AS testigo.job_state),
           0, 3, 3, CASE n %% 3 WHEN 0 THEN 'other' ELSE 'q' END, 'work', 'q', 'default', %(contract)s, 'null',
           CASE n %% 10 WHEN 0 THEN gen_random_uuid() END, CASE n %% 10 WHEN 0 THEN gen_random_uuid() END,
           CASE n %% 10 WHEN 0 THEN 1 END
    FROM generate_series(1, %(rows)s) AS n
"""

_REST = (
    "INSERT INTO testigo.submission SELECT 'c', 'work', n, gen_random_uuid(), 'd' FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.receipt SELECT 'a', n, 'd', '{}', now() FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.session_receipt SELECT gen_random_uuid(), n, 0, 'd', '{}' FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.edge SELECT gen_random_uuid(), gen_random_uuid(), 'fail' FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.successor SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.lapse SELECT gen_random_uuid(), now() + interval '1 day' FROM generate_series(1, 20000) n",
    "INSERT INTO testigo.stream SELECT n, 0, 0, now() FROM generate_series(1, 20000) n",
    """
    INSERT INTO testigo.event
    SELECT 's', n, gen_random_uuid(), 'job.requested', gen_random_uuid(), now(), 1, 'a', 'b', '{}'
    FROM generate_series(1, 20000) n
    """,
    """
    INSERT INTO testigo.session (id, agent, epoch, term_seconds, exclusive, state)
    SELECT gen_random_uuid(), n, 1, 15, false, 'closed' FROM generate_series(1, 20000) n
    """,
)


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def _table_of(node: dict[str, Any]) -> str:
    """The table that a bitmap's index belongs to: PostgreSQL names the index alone."""
    return str(node.get("Index Name", "")).partition("_")[0] if node["Node Type"] == "Bitmap Index Scan" else ""
