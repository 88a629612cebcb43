"""The defaults of the engine, one frozen dataclass per concern.

Everything that has a default has it here and nowhere else; the reference shows this file as a
table. Units are in the names. What the user may set, the place of the installation and `Worker`, is
found by `testigo.configuration`; the folder of keys is named by `TESTIGO_KEYS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ACCESS",
    "CONTRACT",
    "EMBEDDED",
    "EVIDENCE",
    "LIMITS",
    "RETENTION",
    "SESSIONS",
    "STORE",
    "WEB",
    "WORKER",
    "Access",
    "Contract",
    "Embedded",
    "Evidence",
    "Limits",
    "Retention",
    "Sessions",
    "Store",
    "Web",
    "Worker",
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
    trace_bytes_max: int = 512
    """A traceparent."""
    note_bytes_max: int = 1024
    """What a run says of its progress: cut to this, never refused."""
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
    searched_bytes_max: int = 4 * 1024
    """A larger payload is not looked into when jobs are searched by what is in it."""
    operation_jobs_max: int = 100_000
    """Jobs of one operation."""
    causes_walk_rows: int = 2_500
    """Failed jobs, the newest, that are looked at to tell what has failed by its causes."""
    operation_walk_rows: int = 100_000
    """Rows that the selection of an operation looks at."""
    attempts_max: int = 1_000
    """A contract's attempts or crash limit, and the waits that a backoff may list."""
    cost_max: float = 1e15
    """The cost of one run, or its limit, in whatever unit the installation counts."""
    amount_max: float = 1e18
    """What a run has done, or has to do, in its own unit."""
    seconds_max: float = 366 * 86_400.0
    """A timeout, a backoff, a delay budget or a wait."""
    days_max: int = 10_000
    """How long what has ended is kept."""


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
    events_days: int = 30
    """Events of the streams of queues; of a job that ends later than that, the beginning is forgotten first."""
    tombstones_days: int = 400
    """What is left of a job that was pruned, its key included."""
    statistics_days: int = 400
    """What happened, rolled up, in the coarsest of its steps."""
    operations_days: int = 400
    """Operations over many jobs, and what became of each of them."""


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
    look_first_seconds: float = 0.005
    """Whoever waits for a job's end looks again after this; it grows with the time that was waited."""
    look_growth: float = 1.3
    """By what each pause between two looks is longer than the one before."""
    look_cap_seconds: float = 0.25
    """Where those pauses stop to grow."""
    hearing_seconds: float = 10.0
    """A listener that heard nothing for so long asks its server for an answer."""
    hearing_answer_seconds: float = 5.0
    """Without that answer in this time, the listener takes another connection."""
    answer_seconds: float = 20.0
    """A worker's command that was not answered for so long is sent again, on another connection."""
    log_again_seconds: float = 5.0
    """Before the log repeats a sentence of an outage."""


@dataclass(frozen=True, slots=True)
class Worker:
    """How a worker runs: its processes, and how long each step of stopping them may take."""

    slots: int = 10
    """Runs of one runner at a time."""
    runners_max: int = 64
    """Runners of one worker; by default there are as many as the machine has cores."""
    beats_per_term: int = 5
    """Renewals in a term."""
    drain_seconds: float = 30.0
    """After the first SIGTERM, before what still runs is stopped and given back."""
    kill_grace_seconds: float = 5.0
    """From the request to stop until the runner is killed."""
    runner_start_seconds: float = 60.0
    """Until a new runner has said hello."""
    runner_jobs_max: int = 0
    """Runs after which a runner is replaced; 0 for no limit."""
    runner_age_seconds_max: float = 0.0
    """Age after which a runner is replaced; 0 for no limit."""
    runner_memory_bytes_max: int = 0
    """Resident memory after which a runner is replaced; 0 for no limit."""
    log_lines_max: int = 1_000
    """Log lines that are kept of one run."""
    log_bytes_max: int = 64 * 1024
    """All kept log lines of one run together, as UTF-8."""
    log_line_bytes_max: int = 4 * 1024
    """One log line; beyond it, it is cut."""
    note_seconds: float = 0.1
    """Progress and log lines of a runner are sent at most this often."""
    prune_seconds: float = 600.0
    """Between two looks for what is to be pruned, when there was nothing more."""
    calls_max: int = 2
    """Calls of handlers (save, submit) that a keeper answers at a time."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """How long the embedded server may take, and what it may write beside its data (spec P-31)."""

    start_seconds: float = 60.0
    """Until a server answers, orphans of an earlier one included; making its data directory may take as long again."""
    stop_seconds: float = 30.0
    """For a fast shutdown, before an immediate one."""
    log_bytes_max: int = 1024 * 1024
    """The log of the server; beyond it only the newest quarter of this size is kept."""


@dataclass(frozen=True, slots=True)
class Web:
    """How the panel and the API are served."""

    public_url: str = ""
    """Where browsers find it behind a proxy, prefix included: https://ops.example.org/jobs. Empty: as asked."""
    trusted_proxies: str = ""
    """Addresses of proxies, with commas between, that are believed whom they ask for (X-Forwarded-For, -Proto)."""
    environment: str = ""
    """What the badge on every page says: production, staging …"""
    pool_size: int = 10
    """Connections of one server process."""
    read_seconds: float = 5.0
    """A reading that takes longer is given up, by the database first."""
    act_seconds: float = 20.0
    """After so long a caller is told that the database did not answer; the command may be sent again unchanged."""
    body_bytes_max: int = 4 * 1024 * 1024
    """The body of one request."""
    request_seconds: float = 30.0
    """How long a client may take to send one request; then it is hung up on."""
    requests_per_second: float = 50.0
    """What one caller is answered in the long run."""
    requests_burst: int = 200
    """What one caller is answered at once."""
    streams_max: int = 1_000
    """Open streams of signals and events, of one server process."""
    signal_seconds: float = 1.0
    """Between two looks for what has changed; a topic is signalled at most so often."""
    ping_seconds: float = 15.0
    """A stream that has nothing to tell says at least so often that it lives."""
    stop_seconds: float = 2.0
    """How long requests may go on after the server was told to stop."""
    oidc_issuer: str = ""
    """Whose logins are believed, as https://login.example.org; empty for none but our own."""
    oidc_client_id: str = ""
    """As which client the issuer knows this installation."""
    oidc_client_secret: str = field(default="", repr=False)
    """What proves that to it."""
    oidc_name_claim: str = "sub"
    """The claim that names somebody: one that is never given to anybody else, and that nobody chooses freely."""
    oidc_role_claim: str = "testigo_role"
    """The claim that names the role: viewer, operator, reviewer or admin. Whoever has none does not get in."""


@dataclass(frozen=True, slots=True)
class Access:
    """How long people stay logged in, and how often a password may be tried. All by the database's clock."""

    login_hours: float = 168.0
    """A login ends so long after it began, however much it was used."""
    login_idle_hours: float = 12.0
    """A login that was not used for so long has ended."""
    link_minutes: float = 15.0
    """A login link works once, and no longer than this."""
    seen_seconds: float = 60.0
    """The last use of a login or token is written at most this often."""
    password_chars_min: int = 8
    """The shortest password."""
    password_chars_max: int = 1024
    """The longest password."""
    tries_free: int = 5
    """Failed logins from one address, or of a browser that is known for the name, after which the next ones wait."""
    tries_minutes: float = 15.0
    """Failed logins are forgotten when there was none for so long."""
    tries_wait_first_seconds: float = 5.0
    """The first of these waits; each further failure doubles it."""
    tries_wait_cap_seconds: float = 300.0
    """Where it stops to grow: nobody is locked out for ever."""
    name_tries: int = 30
    """Failed logins of one name within `tries_minutes`, from all addresses, after which only known browsers may try."""
    browser_days: int = 90
    """A browser in which somebody logged in by a password is known for their name for so long."""
    token_days_max: int = 366
    """A token expires after so many days at most."""
    audit_days: int = 400
    """How long the audit is kept; the database refuses to delete what is younger."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Bounds on what analysers find; each refusal names the one it broke (spec D-14, D-24)."""

    finding_bytes_max: int = 64 * 1024
    """One finding in its canonical form."""
    message_bytes_max: int = 16 * 1024
    """What a finding says, as UTF-8; beyond it, it is cut."""
    snippet_bytes_max: int = 16 * 1024
    """The lines of source that a finding shows, as UTF-8; beyond it, they are cut."""
    rule_chars_max: int = 500
    """The name by which a tool knows its rule, or the title that it gives it."""
    metadata_max: int = 32
    """Further named texts of one finding."""
    metadata_bytes_max: int = 2 * 1024
    """One of those texts, as UTF-8; beyond it, it is cut."""
    path_bytes_max: int = 4 * 1024
    """A path inside the root that was scanned, as UTF-8."""
    position_max: int = 2**31 - 1
    """The largest line or column."""
    page_findings_max: int = 1_000
    """Findings of one page of a sealed result."""
    page_bytes_max: int = 1024 * 1024
    """One page of a sealed result, as JSON."""
    uncovered_max: int = 1_000
    """Files that one result names as skipped, and as failed; all of them are counted."""
    reasons_max: int = 100
    """Why a result is not complete, or a gate does not pass, in so many sentences at most."""
    exemption_days_max: int = 366
    """An exemption that ends does so after so many days at most."""


CONTRACT = Contract()
LIMITS = Limits()
SESSIONS = Sessions()
RETENTION = Retention()
STORE = Store()
WORKER = Worker()
EMBEDDED = Embedded()
EVIDENCE = Evidence()
ACCESS = Access()
WEB = Web()
