"""The defaults of the engine, one frozen dataclass per concern.

Everything that has a default has it here and nowhere else; the reference shows this file as a
table. Units are in the names. What the user may set is read from `TESTIGO_*` variables by the
door that needs it (`TESTIGO_URL`, `TESTIGO_SCHEMA`, `TESTIGO_KEYS`).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CONTRACT",
    "EMBEDDED",
    "LIMITS",
    "RETENTION",
    "SESSIONS",
    "STORE",
    "Contract",
    "Embedded",
    "Limits",
    "Retention",
    "Sessions",
    "Store",
]


@dataclass(frozen=True, slots=True)
class Contract:
    """What a job promises and may cost, unless its submission says otherwise (spec model.md)."""

    attempts: int = 3
    """Failures: the one that reaches it is the last. The crash limit is the same number."""
    timeout_seconds: float = 120.0
    """The hard limit of one run."""
    backoff_first_seconds: float = 2.0
    """The ceiling of the first wait before a retry; it doubles with every failure."""
    backoff_cap_seconds: float = 600.0
    """Where that ceiling stops to grow; each wait is drawn evenly from zero to the ceiling."""
    priority: int = 0
    """Lower is sooner."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what comes from outside; each refusal names the one it broke."""

    inline_bytes_max: int = 256 * 1024
    """A payload, an output or a checkpoint, each, as UTF-8."""
    json_depth_max: int = 64
    """How deep a document may be nested."""
    name_chars_max: int = 200
    """A queue, kind, client, agent, actor, stream or tag."""
    key_bytes_max: int = 512
    """A submission key, as UTF-8: it lives in an index."""
    text_bytes_max: int = 16 * 1024
    """An error, a reason or a note: text from outside is cut to this, never refused."""
    tags_max: int = 32
    """Tags of one job."""
    parents_max: int = 1_000
    """Parents of one job."""
    batch_max: int = 10_000
    """Rows of one submit, settle or control command."""
    claim_max: int = 400
    """Jobs of one claim."""
    answer_bytes_max: int = 64 * 1024
    """What a statement that holds locks may send back (spec P-10)."""
    page_max: int = 1_000
    """Rows of one page of a reading."""
    page_bytes_max: int = 1024 * 1024
    """What the events of one page tell, as UTF-8; a page has at least one event, however large."""
    walk_rows: int = 10_000
    """Rows that a listing, or a prune, looks at in one statement."""
    count_max: int = 10_000
    """Where a count that is shown stops counting."""
    attempts_max: int = 1_000
    """A contract's attempts or crash limit, and the waits that a backoff may list."""
    cost_max: float = 1e15
    """The cost of one run, or its limit, in whatever unit the installation counts."""
    seconds_max: float = 366 * 86_400.0
    """A timeout, a backoff, a delay budget or a wait."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """How ownership is timed (spec P-18, P-19). All on monotonic clocks."""

    term_seconds: float = 15.0
    """A session whose beat was watched unchanged for so long is dead."""
    term_seconds_min: float = 2.0
    """The shortest term that a session may ask for."""
    stop_after_terms: float = 0.6
    """The holder stops itself when its last good renewal is older than this share of the term."""
    clock_drift: float = 0.01
    """rho of P-19: how far two monotonic clocks may run apart, as a share."""
    kill_seconds: float = 0.5
    """kill_time of P-19: from the decision to stop until the last runner is gone."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what has ended is kept, in days."""

    jobs_days: int = 30
    """Jobs that have ended."""
    receipts_days: int = 7
    """Receipts; an older command is refused, never executed."""
    tombstones_days: int = 400
    """What is left of a job that was pruned, its key included."""


@dataclass(frozen=True, slots=True)
class Store:
    """How the engine meets its database."""

    schema: str = "testigo"
    """The schema that holds the tables; `TESTIGO_SCHEMA` names another."""
    pool_size: int = 5
    """Connections of one process."""
    lock_timeout_seconds: float = 5.0
    """A wait on a key, receipt, row or head; after it, KEY_BUSY (spec P-08)."""
    idle_in_transaction_seconds: float = 5.0
    """Before the server ends a transaction of ours that holds locks while idle (spec P-10)."""
    tries: int = 8
    """How often a command is sent before AUTHORITY_UNAVAILABLE."""
    retry_first_seconds: float = 0.05
    """The ceiling of the first pause before a command is sent again."""
    retry_cap_seconds: float = 2.0
    """Where that ceiling, which doubles, stops to grow."""
    sweep_rows: int = 1_000
    """Rows that an admission, a promotion, an expiry or a prune moves in one statement."""
    wake_seconds: float = 0.01
    """Wake-ups of one process and stream are sent at most this often."""
    poll_seconds: float = 1.0
    """How long at most a change goes unnoticed by somebody who was not woken."""
    hearing_seconds: float = 10.0
    """A listener that heard nothing for so long asks its server for an answer."""
    hearing_answer_seconds: float = 5.0
    """Without that answer in this time, the listener takes another connection."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """How long the embedded server may take, and what it may write beside its data (spec P-31)."""

    start_seconds: float = 60.0
    """Until a server answers, orphans of an earlier one included; making its data directory may take as long again."""
    stop_seconds: float = 30.0
    """For a fast shutdown, before an immediate one."""
    log_bytes_max: int = 1024 * 1024
    """The log of the server; beyond it only the newest quarter of this size is kept."""


CONTRACT = Contract()
LIMITS = Limits()
SESSIONS = Sessions()
RETENTION = Retention()
STORE = Store()
EMBEDDED = Embedded()
